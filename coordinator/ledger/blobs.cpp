#include "coordinator/ledger/blobs.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::coordinator {

using base::Error;
using base::ErrorCode;

base::Status make_folders(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return base::system_error("cannot create " + folder, error.value());
  return base::ok();
}

base::Status sync_folder(const std::string& folder) {
  base::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return base::system_error("cannot open " + folder, errno);
  if (::fsync(fd.get()) != 0) return base::system_error("cannot sync " + folder, errno);
  return base::ok();
}

base::Expected<std::string> Blobs::store(std::string_view bytes) const {
  auto digest = base::sha256(bytes);
  const auto file = path(digest);
  // What is there may be torn only by a failing disk; a wrong length is written anew.
  std::error_code error;
  if (const auto size = std::filesystem::file_size(file, error); !error && size == bytes.size()) return digest;
  const auto folder = folder_ + "/" + digest.substr(0, 2);
  if (auto status = make_folders(folder); !status) return status.error();
  if (auto status = base::write_file_atomically(file, bytes); !status) return status.error();
  if (auto status = sync_folder(folder); !status) return status.error();
  return digest;
}

base::Expected<std::string> Blobs::load(const std::string& digest) const {
  const bool hex = digest.size() == 64 && std::all_of(digest.begin(), digest.end(), [](char c) {
                     return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                   });
  if (!hex) return Error{ErrorCode::bad_input, "\"" + digest + "\" is not a blob's digest: expected 64 hex digits", {}};
  auto bytes = base::read_file(path(digest));
  if (!bytes) return bytes;
  if (base::sha256(*bytes) != digest)
    return Error{ErrorCode::io, path(digest) + " is not what was stored under its digest; it was damaged since", {}};
  return bytes;
}

}  // namespace leafcutter::coordinator
