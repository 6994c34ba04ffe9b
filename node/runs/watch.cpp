#include "node/runs/watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace leafcutter::node::runs {
namespace {

namespace fs = std::filesystem;

/// A file is finished when its writer closes it, or when it is moved here; what was just created matters only when it
/// is a link.
constexpr std::uint32_t finished_events = IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr int most_links = 40;

}  // namespace

base::Expected<std::unique_ptr<FileWatch>> FileWatch::start(const std::string& path) {
  base::UniqueFd fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!fd) return base::system_error("cannot watch " + path, errno);
  std::unique_ptr<FileWatch> watch(new FileWatch(path, std::move(fd)));
  if (const auto watching = watch->watch_folders(); !watching) return watching.error();
  return watch;
}

/// The folders of the file and of every link that leads to it. One that is watched already stays as it is.
base::Status FileWatch::watch_folders() {
  fs::path file = path_;
  for (int i = 0; i < most_links; ++i) {
    const auto folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    const int watch = ::inotify_add_watch(fd_.get(), folder.c_str(), finished_events | IN_CREATE | IN_ONLYDIR);
    if (watch >= 0) folders_[watch] = folder;
    if (watch < 0 && i == 0)
      return base::Error{base::ErrorCode::bad_input,
                         base::system_error("cannot watch the folder " + folder.string(), errno).message,
                         {"--watch", 0, 0}};
    // Any part of the path may be the link: "..data/run.yaml" goes through the folder "..data".
    std::error_code error;
    const auto target = fs::read_symlink(file, error);
    if (error) break;
    file = target.is_absolute() ? target : folder / target;
  }
  return base::ok();
}

bool FileWatch::changed() {
  alignas(inotify_event) std::array<char, 16 << 10> buffer{};
  bool any = false;
  for (ssize_t size; (size = ::read(fd_.get(), buffer.data(), buffer.size())) > 0;)
    for (ssize_t at = 0; at < size;) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = buffer.data() + at + sizeof event;
      at += static_cast<ssize_t>(sizeof event + event.len);
      std::error_code error;
      any = any || (event.mask & IN_CREATE) == 0 ||
            (event.len > 0 && fs::is_symlink(fs::symlink_status(folders_[event.wd] / name, error)));
    }
  if (any) (void)watch_folders();  // a swapped link leads elsewhere now
  return any;
}

}  // namespace leafcutter::node::runs
