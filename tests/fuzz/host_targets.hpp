// The readers of what a node may do to its host and has done: host profiles and audit logs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fuzz {

int read_host_profile(const std::uint8_t* data, std::size_t size);
int verify_audit_log(const std::uint8_t* data, std::size_t size);
std::vector<std::string> profile_corpus();
std::vector<std::string> audit_corpus();

}  // namespace fuzz
