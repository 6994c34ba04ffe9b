#include "node/syscalls/object.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "node/syscalls/address.hpp"
#include "node/syscalls/resource.hpp"
#include "node/syscalls/supervisor.hpp"

namespace leafcutter::node {
namespace {

constexpr int mptcp = 262;  // IPPROTO_MPTCP

Object unresolved(const std::string& family, const std::string& why) {
  Object object;
  object.state = Object::State::unresolved;
  object.family = family;
  object.why = why;
  return object;
}

Object site(const std::string& family, const std::string& resource, const std::string& path) {
  Object object;
  object.state = Object::State::site;
  object.family = family;
  object.resource = resource;
  object.path = path;
  return object;
}

bool speaks_tcp(int fd) {
  int protocol = 0;
  socklen_t size = sizeof protocol;
  if (::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) return false;
  return protocol == IPPROTO_TCP || protocol == mptcp;
}

template <class Ask>
std::string address_by(Ask ask, int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (ask(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "";
  const auto text = address_text({reinterpret_cast<const char*>(&storage), size});
  return text ? *text : "";
}

int argument(const seccomp_data& call, int index) { return static_cast<int>(call.args[index]); }

}  // namespace

ObjectNames::ObjectNames(const std::string& data_folder, std::vector<std::string> path_globs,
                         std::map<std::string, std::string> peers, const std::vector<std::string>& families)
    : data_folder_(data_folder.empty() ? "" : normal_path(data_folder)),
      path_globs_(std::move(path_globs)),
      peers_(std::move(peers)) {
  std::error_code failed;
  const auto real = std::filesystem::weakly_canonical(data_folder_, failed);
  real_data_folder_ = failed || data_folder_.empty() ? data_folder_ : normal_path(real.string());
  for (const auto& name : families) {
    const auto* family = scenarios::syscall_family(name);
    if (family == nullptr) continue;
    for (const auto& call : family->calls) {
      const auto* shape = call_shape(call);
      if (shape == nullptr) continue;
      auto& watched = watched_[shape->number];
      watched.shape = shape;
      (family->object == "socket" ? watched.socket_family : watched.file_family) = name;
    }
  }
}

Object ObjectNames::name(const seccomp_data& call, const Target& target) const {
  const auto found = watched_.find(call.nr);
  if (found == watched_.end()) return {};
  const auto& watched = found->second;
  Object object;
  switch (watched.shape->object) {
    case CallShape::Object::descriptor: object = of_descriptor(watched, call, target); break;
    case CallShape::Object::path: object = of_path(watched, call, target); break;
    case CallShape::Object::address: object = of_address(watched, call, target); break;
    case CallShape::Object::mapping: object = of_mapping(watched, call, target); break;
    case CallShape::Object::nothing: object = site(watched.file_family, watched.shape->name, ""); break;
  }
  object.call = watched.shape->name;
  return object;
}

Object ObjectNames::of_descriptor(const Watched& watched, const seccomp_data& call, const Target& target) const {
  const auto fd = argument(call, watched.shape->fd);
  const auto name = target.descriptor_name(fd);
  if (!name)
    return unresolved(watched.file_family.empty() ? watched.socket_family : watched.file_family, name.error().message);
  if (name->starts_with("socket:")) return watched.socket_family.empty() ? Object() : of_socket(watched, fd, target);
  if (!name->starts_with("/") || watched.file_family.empty()) return {};
  auto object = of_file(watched, *name);
  if (object.state != Object::State::site) return object;
  // A FIFO or a device in the data folder is no file of the service's.
  const auto status = target.descriptor_status(fd);
  if (!status) return unresolved(watched.file_family, status.error().message);
  if (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode)) return {};
  return object;
}

Object ObjectNames::of_path(const Watched& watched, const seccomp_data& call, const Target& target) const {
  const auto& shape = *watched.shape;
  auto path = target.text(call.args[shape.path]);
  if (!path) return unresolved(watched.file_family, path.error().message);
  if (path->empty()) return {};  // the kernel refuses it
  if (path->front() != '/') {
    const auto folder = target.folder(shape.folder == none ? AT_FDCWD : argument(call, shape.folder));
    if (!folder) return unresolved(watched.file_family, folder.error().message);
    *path = *folder + "/" + *path;
  }
  return of_file(watched, normal_path(*path));
}

Object ObjectNames::of_mapping(const Watched& watched, const seccomp_data& call, const Target& target) const {
  const auto path = target.mapped_file(call.args[watched.shape->path]);
  if (!path) return unresolved(watched.file_family, path.error().message);
  return path->empty() ? Object() : of_file(watched, *path);
}

Object ObjectNames::of_address(const Watched& watched, const seccomp_data& call, const Target& target) const {
  const auto size = call.args[watched.shape->size] & 0xffffffffu;
  if (size > sizeof(sockaddr_storage)) return {};  // the kernel refuses it
  const auto bytes = target.memory(call.args[watched.shape->path], size);
  if (!bytes) return unresolved(watched.socket_family, bytes.error().message);
  const auto address = address_text(*bytes);
  if (!address) return {};
  static constexpr std::string_view local = "unix:";
  if (address->starts_with(local)) {
    const auto path = address->substr(local.size());
    if (path.empty() || path.front() != '/') return {};
    auto object = of_file(watched, normal_path(path));
    object.family = watched.socket_family;
    return object;
  }
  const auto copy = target.duplicate(argument(call, watched.shape->fd));
  if (!copy) return unresolved(watched.socket_family, copy.error().message);
  if (!speaks_tcp(copy->get())) return {};
  auto object = site(watched.socket_family, peer(*address), *address);
  object.socket = true;
  return object;
}

Object ObjectNames::of_file(const Watched& watched, const std::string& path) const {
  const auto seen = as_seen(path);
  const auto resource = resource_class(seen, data_folder_, path_globs_);
  return resource.empty() ? Object() : site(watched.file_family, resource, seen);
}

Object ObjectNames::of_socket(const Watched& watched, int fd, const Target& target) const {
  const auto copy = target.duplicate(fd);
  if (!copy) return unresolved(watched.socket_family, copy.error().message);
  if (!speaks_tcp(copy->get())) return {};
  Object object;
  if (watched.socket_family == "accept") {
    const auto own = address_by(::getsockname, copy->get());
    object = site(watched.socket_family, "listener:" + own.substr(own.rfind(':') + 1), own);
  } else {
    // A client's port is drawn by the kernel and would make a new site of each connection.
    const auto address = address_by(::getpeername, copy->get());
    const auto known = peers_.find(address);
    object = site(watched.socket_family, known == peers_.end() ? "socket" : known->second, address);
  }
  object.socket = true;
  return object;
}

std::string ObjectNames::as_seen(const std::string& path) const {
  if (real_data_folder_ == data_folder_) return path;
  const auto rest = below(path, real_data_folder_);
  if (rest.empty()) return path;
  return rest == "." ? data_folder_ : data_folder_ + "/" + rest;
}

std::string ObjectNames::peer(const std::string& address) const {
  const auto known = peers_.find(address);
  return known == peers_.end() ? address : known->second;
}

}  // namespace leafcutter::node
