#include "commands/folders.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/digest.hpp"
#include "base/folder_lock.hpp"

namespace leafcutter::commands {

namespace fs = std::filesystem;

class FoldersInUse {
 public:
  FoldersInUse() = default;
  ~FoldersInUse() {
    std::error_code ignored;
    for (const auto& folder : held_) {
      fs::remove_all(folder.path, ignored);
      const auto around = fs::path(folder.path).parent_path();
      if (around.filename() == "run" || around.filename() == "spool") fs::remove(around, ignored);  // unless in use
    }
  }
  FoldersInUse(const FoldersInUse&) = delete;
  FoldersInUse& operator=(const FoldersInUse&) = delete;

  void add(const std::string& folder, base::FolderLock lock) { held_.push_back({folder, std::move(lock)}); }

 private:
  struct Held {
    std::string path;
    base::FolderLock lock;
  };
  std::vector<Held> held_;
};

namespace {

/// sun_path holds 108 bytes, and the sockets' names need some of them.
constexpr std::size_t longest_run_folder = 70;

/// How often somebody else may remove, as left by a killed process, what is being made.
constexpr int attempts = 10;

base::Error cannot_make(const std::string& what, const std::error_code& code) {
  return {base::ErrorCode::io, what + ": " + code.message(), {}};
}

base::Status make_private(const std::string& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return cannot_make("cannot make the folder " + folder, code);
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    return base::Error{base::ErrorCode::io, folder + " is not a folder of our own", {}};
  ::chmod(folder.c_str(), 0700);
  return base::ok();
}

base::Expected<base::FolderLock> make_ours(const std::string& folder) {
  for (int attempt = 1;; ++attempt) {
    if (auto made = make_private(folder); !made) return made.error();
    auto lock = base::FolderLock::take(folder);
    if (lock || lock.error().code == base::ErrorCode::conflict || attempt == attempts) return lock;
  }
}

/// Empty, but for the lock.
void clear(const std::string& folder) {
  std::error_code code;
  std::vector<fs::path> left;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code))
    if (entry->path().filename() != "lock") left.push_back(entry->path());
  for (const auto& path : left) fs::remove_all(path, code);
}

/// Where sockets go whose folder has too long a name.
std::string temporary_folder() {
  const auto* temporary = std::getenv("XDG_RUNTIME_DIR");
  return temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
}

constexpr const char* short_prefix = "leafcutter-";

std::string run_folder(const std::string& out, const std::string& part) {
  auto folder = out + "/run/" + part;
  if (folder.size() <= longest_run_folder) return folder;
  return temporary_folder() + "/" + short_prefix +
         base::sha256(folder + ":" + std::to_string(::geteuid())).substr(0, 12);
}

}  // namespace

base::Expected<Folders> make_folders(const std::string& out, const std::string& part, Keep keep) {
  std::error_code code;
  Folders folders;
  folders.out = fs::absolute(out, code).lexically_normal().string();
  if (code) return cannot_make("cannot make sense of the folder " + out, code);
  fs::create_directories(folders.out, code);
  if (code) return cannot_make("cannot make the folder " + folders.out, code);
  const auto name = keep == Keep::nothing ? part + "-" + std::to_string(::getpid()) : part;
  folders.run = run_folder(folders.out, name);
  folders.spool = folders.out + "/spool/" + name;

  for (const auto* around : {"/run", "/spool"}) base::sweep_folders(folders.out + around, "");
  base::sweep_folders(temporary_folder(), short_prefix);
  auto in_use = std::make_shared<FoldersInUse>();
  auto run = make_ours(folders.run);
  if (!run) return run.error();
  in_use->add(folders.run, std::move(*run));
  clear(folders.run);
  if (keep == Keep::spool) {
    if (auto made = make_private(folders.spool); !made) return made.error();
  } else {
    auto spool = make_ours(folders.spool);  // locked: swept when we are killed
    if (!spool) return spool.error();
    in_use->add(folders.spool, std::move(*spool));
  }
  folders.in_use = std::move(in_use);
  return folders;
}

std::string own_program() {
  std::array<char, 4096> path{};
  const auto n = ::readlink("/proc/self/exe", path.data(), path.size());
  return n > 0 ? std::string(path.data(), static_cast<std::size_t>(n)) : "/proc/self/exe";
}

}  // namespace leafcutter::commands
