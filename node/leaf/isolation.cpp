#include "node/leaf/isolation.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::node {
namespace {

using base::Status;
using base::UniqueFd;

// The new root is put together on top of a folder that every host has; what lies below it is reached by descriptors.
const std::string new_root = "/tmp";

base::Error refused(const std::string& what, int error) {
  return {base::ErrorCode::unavailable, "isolation: " + what + ": " + std::strerror(error), {}};
}

Status write_text(const std::string& path, const std::string& text) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return refused("open " + path, errno);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return refused("write " + path, errno);
  return base::ok();
}

Status map_user(uid_t uid, gid_t gid) {
  if (auto status = write_text("/proc/self/setgroups", "deny"); !status) return status;
  if (auto status = write_text("/proc/self/uid_map", "1000 " + std::to_string(uid) + " 1"); !status) return status;
  return write_text("/proc/self/gid_map", "1000 " + std::to_string(gid) + " 1");
}

Status make_folders(const std::string& path) {
  for (std::size_t slash = 1; slash != std::string::npos;) {
    slash = path.find('/', slash + 1);
    const auto part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) return refused("create " + part, errno);
  }
  return base::ok();
}

Status mount_fresh(const std::string& type, const std::string& path, unsigned long flags, const std::string& options) {
  if (::mount(type.c_str(), path.c_str(), type.c_str(), flags, options.c_str()) != 0)
    return refused("mount " + type + " on " + path.substr(new_root.size()), errno);
  return base::ok();
}

Status bind_mount(const std::string& source, const std::string& target, bool recursive, bool read_only) {
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND | (recursive ? MS_REC : 0), nullptr) != 0)
    return refused("bind " + target, errno);
  if (!read_only) return base::ok();
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (::syscall(SYS_mount_setattr, AT_FDCWD, target.c_str(), recursive ? AT_RECURSIVE : 0, &attributes,
                sizeof attributes) != 0)
    return refused("make " + target + " read-only", errno);
  return base::ok();
}

/// One entry of the host's root folder, the same inside; folders and files are bound, links are made again.
Status copy_entry(const std::string& name) {
  const auto source = "/" + name, target = new_root + "/" + name;
  struct stat info {};
  if (::lstat(source.c_str(), &info) != 0) return base::ok();  // gone since the folder was listed
  if (S_ISLNK(info.st_mode)) {
    std::array<char, PATH_MAX> link{};
    const auto n = ::readlink(source.c_str(), link.data(), link.size() - 1);
    if (n > 0 && ::symlink(link.data(), target.c_str()) != 0) return refused("link " + source, errno);
    return base::ok();
  }
  if (S_ISDIR(info.st_mode)) {
    if (::mkdir(target.c_str(), 0755) != 0) return refused("create " + source, errno);
  } else if (S_ISREG(info.st_mode)) {
    if (auto status = write_text(target, ""); !status) return status;
  } else {
    return base::ok();
  }
  return bind_mount(source, target, true, true);
}

Status copy_root() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/"), ::closedir);
  if (!folder) return refused("list /", errno);
  while (const auto* entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || name == "proc" || name == "tmp" || name == "run" || "/" + name == leaf_data_root)
      continue;
    if (auto status = copy_entry(name); !status) return status;
  }
  return base::ok();
}

/// Own scratch places; a host without one of the mount points does without it.
Status scratch() {
  for (const auto* name : {"/proc", "/tmp", "/run", leaf_data_root})
    if (::mkdir((new_root + name).c_str(), 0755) != 0) return refused("create " + std::string(name), errno);
  ::chmod((new_root + "/tmp").c_str(), 01777);
  for (const auto* name : {"/var/tmp", "/dev/shm"})
    if (::access((new_root + name).c_str(), F_OK) == 0)
      if (auto status = mount_fresh("tmpfs", new_root + name, MS_NOSUID | MS_NODEV, "size=256m,mode=1777"); !status)
        return status;
  return mount_fresh("proc", new_root + "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
}

/// Puts `text` in the place of a file of the host; where the host has no such file there is nothing to hide.
Status overlay(const std::string& path, const std::string& name, const std::string& text) {
  const auto source = new_root + "/." + name;
  if (auto status = write_text(source, text); !status) return status;
  const auto target = new_root + path;
  if (::access(target.c_str(), F_OK) != 0) return base::ok();
  return bind_mount(source, target, false, true);
}

constexpr std::string_view own_names = "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 leaf\n";

/// What a program that asks a resolver sees in the place of a file.
struct ResolverFile {
  const char* source;
  const char* target;
};
constexpr ResolverFile resolver_files[] = {{"/.resolver-hosts", "/etc/hosts"},
                                           {"/.resolver-resolv.conf", "/etc/resolv.conf"},
                                           {"/.resolver-nsswitch.conf", "/etc/nsswitch.conf"}};

/// The host's own file but for how names of hosts are found: other ways (mdns, resolve) would find the host's services.
std::string switch_text() {
  const auto text = base::read_file("/etc/nsswitch.conf");
  std::string out = "hosts: files dns\n";
  for (std::size_t begin = 0; text && begin < text->size();) {
    const auto end = std::min(text->find('\n', begin), text->size());
    const auto line = text->substr(begin, end - begin);
    if (!line.starts_with("hosts:")) out += line + "\n";
    begin = end + 1;
  }
  return out;
}

Status write_resolver_files() {
  const std::string texts[] = {std::string(own_names), std::string("nameserver ") + resolver_address + "\n",
                               switch_text()};
  for (std::size_t i = 0; i < std::size(resolver_files); ++i)
    if (auto status = write_text(new_root + resolver_files[i].source, texts[i]); !status) return status;
  return base::ok();
}

std::string hosts_text(const IsolationPlan& plan) {
  std::string text(own_names);
  for (const auto& [address, name] : plan.hosts) text += address + " " + name + "\n";
  return text;
}

/// The host's file of users or groups with an entry for number 1000, which we are inside: programs that look themselves
/// up (initdb does) would not start without.
std::string with_entry(const std::string& path, const std::string& entry) {
  auto text = base::read_file(path);
  std::string out = text ? std::move(*text) : std::string();
  for (std::size_t begin = 0; begin < out.size();) {
    const auto end = std::min(out.find('\n', begin), out.size());
    const auto number = out.find(':', std::min(out.find(':', begin), end) + 1);
    if (number < end && out.compare(number, 6, ":1000:") == 0) return out;
    begin = end + 1;
  }
  if (!out.empty() && out.back() != '\n') out += '\n';
  return out + entry + "\n";
}

/// A folder of the host, held open, to be bound at the same path inside.
struct Kept {
  std::string path;
  UniqueFd fd;
  bool read_only = true;
};

base::Expected<Kept> keep(const std::string& path, bool read_only) {
  std::array<char, PATH_MAX> real{};
  if (::realpath(path.c_str(), real.data()) == nullptr) return refused("find " + path, errno);
  Kept kept{real.data(), UniqueFd(::open(real.data(), O_PATH | O_CLOEXEC)), read_only};
  if (!kept.fd) return refused("open " + path, errno);
  return kept;
}

bool hidden(const std::string& path) {
  for (const std::string below : {"/tmp", "/run", "/var/tmp", "/dev/shm", leaf_data_root})
    if (path == below || path.starts_with(below + "/")) return true;
  return false;
}

Status show(const Kept& kept) {
  if (kept.path == "/" || (kept.read_only && !hidden(kept.path))) return base::ok();
  const auto target = new_root + kept.path;
  if (hidden(kept.path))
    if (auto status = make_folders(target); !status) return status;
  return bind_mount("/proc/self/fd/" + std::to_string(kept.fd.get()), target, true, kept.read_only);
}

Status switch_root() {
  if (::chdir(new_root.c_str()) != 0) return refused("enter the new root", errno);
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return refused("pivot_root", errno);
  if (::umount2(".", MNT_DETACH) != 0) return refused("leave the old root", errno);
  if (::chdir("/") != 0) return refused("enter /", errno);
  return base::ok();
}

Status build_root(const IsolationPlan& plan) {
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return refused("make mounts private", errno);
  auto scenario = keep(plan.scenario_folder, true);
  if (!scenario) return scenario.error();
  auto run = keep(plan.run_folder, false);
  if (!run) return run.error();
  if (::mount("leaf", new_root.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=1g,mode=755") != 0)
    return refused("mount the new root", errno);
  if (auto status = copy_root(); !status) return status;
  if (auto status = scratch(); !status) return status;
  if (auto status = overlay("/etc/hosts", "hosts", hosts_text(plan)); !status) return status;
  if (auto status = overlay("/etc/resolv.conf", "resolv.conf", ""); !status) return status;
  if (plan.resolver)
    if (auto status = write_resolver_files(); !status) return status;
  if (auto status = overlay("/etc/passwd", "passwd", with_entry("/etc/passwd", "leaf:x:1000:1000::/tmp:/bin/sh"));
      !status)
    return status;
  if (auto status = overlay("/etc/group", "group", with_entry("/etc/group", "leaf:x:1000:")); !status) return status;
  if (auto status = show(*scenario); !status) return status;
  if (auto status = show(*run); !status) return status;
  for (const auto& name : plan.data_folders)
    if (::mkdir((new_root + leaf_data_root + "/" + name).c_str(), 0700) != 0)
      return refused("create the data folder of " + name, errno);
  ::chmod(new_root.c_str(), 0555);
  return switch_root();
}

}  // namespace

base::Expected<UniqueFd> make_hidden_folder(const std::string& name) {
  const auto path = std::string(leaf_data_root) + "/" + name;
  if (::mkdir(path.c_str(), 0700) != 0) return refused("create " + path, errno);
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return refused("open " + path, errno);
  // What is mounted here goes to every process of the leaf, and none of them may take it off.
  if (::mount("hidden", path.c_str(), "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=0") != 0)
    return refused("hide " + path, errno);
  return folder;
}

int use_resolver() noexcept {
  for (const auto& file : resolver_files) {
    if (::access(file.target, F_OK) != 0) continue;  // the host has no such file, or a link to nowhere
    if (::mount(file.source, file.target, nullptr, MS_BIND, nullptr) != 0) return errno;
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_RDONLY;
    if (::syscall(SYS_mount_setattr, AT_FDCWD, file.target, 0, &attributes, sizeof attributes) != 0) return errno;
  }
  return 0;
}

Status enter_isolation(const IsolationPlan& plan) {
  if (auto status = map_user(plan.host_uid, plan.host_gid); !status) return status;
  if (auto status = build_root(plan); !status) return status;
  if (::sethostname("leaf", 4) != 0) return refused("name the host", errno);
  ::umask(022);
  return base::ok();
}

}  // namespace leafcutter::node
