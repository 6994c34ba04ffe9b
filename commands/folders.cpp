#include "commands/folders.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/digest.hpp"

namespace leafcutter::commands {
namespace {

namespace fs = std::filesystem;

/// sun_path holds 108 bytes, and the sockets' names need some of them.
constexpr std::size_t longest_run_folder = 70;

base::Error failed(const std::string& what, const std::error_code& code) {
  return {base::ErrorCode::io, what + ": " + code.message(), {}};
}

base::Status make_private(const std::string& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return failed("cannot make the folder " + folder, code);
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    return base::Error{base::ErrorCode::io, folder + " is not a folder of our own", {}};
  ::chmod(folder.c_str(), 0700);
  return base::ok();
}

}  // namespace

base::Expected<Folders> make_folders(const std::string& out, const std::string& part) {
  std::error_code code;
  Folders folders;
  folders.out = fs::absolute(out, code).lexically_normal().string();
  if (code) return failed("cannot make sense of the folder " + out, code);
  fs::create_directories(folders.out, code);
  if (code) return failed("cannot make the folder " + folders.out, code);
  folders.run = folders.out + "/run/" + part;
  if (folders.run.size() > longest_run_folder) {
    // The same folder for the same `out`, so that what a killed process left there is found and removed by the next
    // one.
    const auto* temporary = std::getenv("XDG_RUNTIME_DIR");
    folders.run = std::string(temporary != nullptr && *temporary != '\0' ? temporary : "/tmp") + "/leafcutter-" +
                  base::sha256(folders.run + ":" + std::to_string(::geteuid())).substr(0, 12);
  }
  fs::remove_all(folders.run, code);
  if (auto made = make_private(folders.run); !made) return made.error();
  folders.spool = folders.out + "/spool/" + part;
  if (auto made = make_private(folders.spool); !made) return made.error();
  return folders;
}

FoldersRemoval::~FoldersRemoval() {
  std::error_code ignored;
  for (const auto& folder : {folders_.run, folders_.spool}) fs::remove_all(folder, ignored);
  for (const auto* around : {"/run", "/spool"}) fs::remove(folders_.out + around, ignored);  // refused unless empty
}

std::string own_program() {
  std::array<char, 4096> path{};
  const auto n = ::readlink("/proc/self/exe", path.data(), path.size());
  return n > 0 ? std::string(path.data(), static_cast<std::size_t>(n)) : "/proc/self/exe";
}

}  // namespace leafcutter::commands
