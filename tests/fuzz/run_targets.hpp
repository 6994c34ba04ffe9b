// The readers of `leafcutter proxy`: Run documents and journals.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fuzz {

int read_run_document(const std::uint8_t* data, std::size_t size);
int read_journal(const std::uint8_t* data, std::size_t size);

}  // namespace fuzz
