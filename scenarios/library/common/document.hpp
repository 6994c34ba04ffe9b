// One JSON document in a file, read back from the disk as a client of the library's example services sees it.
#pragma once

#include <fstream>
#include <iterator>

#include "http.hpp"

namespace library {

/// 200 and the document; 503 when the file cannot be read; 500 when what is in it is no document.
inline Response read_document(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {503, {{"error", "cannot read"}}};
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return {503, {{"error", "cannot read"}}};
  const auto json = Json::parse(bytes, nullptr, false);
  if (json.is_discarded()) return {500, {{"error", "the file is damaged"}, {"bytes", bytes.size()}}};
  return {200, json};
}

}  // namespace library
