#include "node/syscalls/object.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "node/syscalls/address.hpp"
#include "node/syscalls/asked.hpp"
#include "node/syscalls/object_class.hpp"
#include "node/syscalls/supervisor.hpp"

namespace leafcutter::node {
namespace {

constexpr std::string_view unix_prefix = "unix:";

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

Object elsewhere(const std::string& family, const std::string& kind, const std::string& path) {
  Object object;
  object.state = Object::State::elsewhere;
  object.family = family;
  object.path = path;
  object.kind = kind;
  return object;
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

scenarios::CallFacts Object::facts() const {
  return {.call = call,
          .object = kind,
          .path = socket ? std::string_view(socket_path) : std::string_view(path),
          .peer = peer,
          .address = address,
          .size = size,
          .offset = offset,
          .flags = flags};
}

ObjectNames::ObjectNames(const std::string& data_folder, std::vector<std::string> path_globs,
                         std::map<std::string, std::string> peers, const std::vector<std::string>& families,
                         const scenarios::Plan& plan, const std::string& service)
    : data_folder_(data_folder.empty() ? "" : normal_path(data_folder)),
      classes_(data_folder_, std::move(path_globs)),
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
      const auto at_source = std::ranges::find(family->sources, call) != family->sources.end();
      auto& watched = (at_source ? sources_ : watched_)[shape->number];
      watched.shape = shape;
      watched.fd = at_source ? shape->source : shape->fd;
      (family->object == "socket" ? watched.socket_family : watched.file_family) = name;
    }
  }
  for (const auto& fault : plan.faults) {
    if (!fault.aim || fault.site.lane != service) continue;
    auto& asked = asked_[fault.site.operation];
    asked.kind |= !fault.aim->object.empty();
    asked.size |= fault.aim->size.has_value();
    asked.offset |= fault.aim->offset.has_value();
    asked.flags |= !fault.aim->flags.empty();
    // Space is used by other calls, too, on the paths that the rule is about.
    if (fault.kind == "no-space")
      for (const auto& other : scenarios::fault_kind(fault.kind)->watches) asked_[other];
  }
}

Object ObjectNames::name(const seccomp_data& call, const Target& target) const {
  const auto found = watched_.find(call.nr);
  if (found == watched_.end()) return {};
  return named(found->second, call, target);
}

std::optional<Object> ObjectNames::name_source(const seccomp_data& call, const Target& target) const {
  const auto found = sources_.find(call.nr);
  if (found == sources_.end()) return std::nullopt;
  return named(found->second, call, target);
}

Object ObjectNames::named(const Watched& watched, const seccomp_data& call, const Target& target) const {
  auto object = of_shape(watched, call, target);
  object.call = watched.shape->name;
  if (object.state == Object::State::site || object.state == Object::State::elsewhere)
    if (aimed_at(object.family)) ask(object, watched, call, target);
  return object;
}

Object ObjectNames::of_shape(const Watched& watched, const seccomp_data& call, const Target& target) const {
  switch (watched.shape->object) {
    case CallShape::Object::descriptor: return of_descriptor(watched, call, target);
    case CallShape::Object::path: return of_path(watched, call, target);
    case CallShape::Object::address: return of_address(watched, call, target);
    case CallShape::Object::mapping: return of_mapping(watched, call, target);
    case CallShape::Object::nothing: return of_nothing(watched, call);
  }
  return {};
}

Object ObjectNames::of_descriptor(const Watched& watched, const seccomp_data& call, const Target& target) const {
  const auto fd = argument(call, watched.fd);
  const auto name = target.descriptor_name(fd);
  if (!name)
    return unresolved(watched.file_family.empty() ? watched.socket_family : watched.file_family, name.error().message);
  auto object = of_named(watched, *name, call, target);
  if (told_by_name(object)) object.known_as = *name;
  object.descriptor = watched.fd;
  return object;
}

Object ObjectNames::of_named(const Watched& watched, const std::string& name, const seccomp_data& call,
                             const Target& target) const {
  const auto fd = argument(call, watched.fd);
  if (name.starts_with("socket:")) return watched.socket_family.empty() ? Object() : of_socket(watched, call, target);
  if (watched.file_family.empty()) return {};
  const auto aimed = aimed_at(watched.file_family);
  if (!name.starts_with("/")) return aimed ? elsewhere(watched.file_family, class_of_nameless(name), "") : Object();
  auto object = of_file(watched, {name, true}, target);
  if (object.state == Object::State::no_site || object.state == Object::State::unresolved) return object;
  const auto status = target.descriptor_status(fd);
  if (!status) return unresolved(watched.file_family, status.error().message);
  object.kind = class_of(*status);
  // A FIFO or a device in the data folder is no file of the service's.
  if (object.state == Object::State::site && object.kind != "file" && object.kind != "directory") {
    auto other = aimed ? elsewhere(watched.file_family, object.kind, object.path) : Object();
    other.under = std::move(object.under);
    return other;
  }
  return object;
}

/// Not of a socket, which may be connected to another peer, but for TCP, which stays with the one it has; nor when a
/// rule asks for what each call brings along.
bool ObjectNames::told_by_name(const Object& object) const {
  if (object.state == Object::State::unresolved || !object.doubt.empty()) return false;
  if (object.socket && (object.kind != "socket-tcp" || object.address.empty())) return false;
  const auto asked = asked_.find(object.family);
  return asked == asked_.end() || !(asked->second.size || asked->second.offset || asked->second.flags);
}

Object ObjectNames::of_path(const Watched& watched, const seccomp_data& call, const Target& target) const {
  const auto& shape = *watched.shape;
  auto path = target.text(call.args[shape.path]);
  if (!path) return unresolved(watched.file_family, path.error().message);
  if (path->empty()) return {};  // the kernel refuses it
  const auto relative = path->front() != '/';
  if (relative) {
    const auto folder = target.folder(shape.folder == none ? AT_FDCWD : argument(call, shape.folder));
    if (!folder) return unresolved(watched.file_family, folder.error().message);
    *path = *folder + "/" + *path;
  }
  auto object = of_file(watched, {normal_path(*path), relative}, target);
  const auto asked = asked_.find(watched.file_family);
  if (object.state == Object::State::no_site || asked == asked_.end() || !asked->second.kind) return object;
  const auto kind = class_at_path(call, shape, target);
  if (kind)
    object.kind = *kind;
  else
    object.doubt = kind.error().message;
  return object;
}

Object ObjectNames::of_mapping(const Watched& watched, const seccomp_data& call, const Target& target) const {
  const auto path = target.mapped_file(call.args[watched.shape->path]);
  if (!path) return unresolved(watched.file_family, path.error().message);
  if (path->empty()) return {};
  auto object = of_file(watched, {*path, true}, target);
  object.kind = "file";
  return object;
}

Object ObjectNames::of_nothing(const Watched& watched, const seccomp_data& call) const {
  const auto nr = call.nr;
  const auto of_clock = nr == SYS_clock_gettime || nr == SYS_clock_nanosleep;
  auto object = site(watched.file_family, of_clock ? clock_name(argument(call, 0)) : watched.shape->name, "");
  object.kind = nr == SYS_sync ? "other" : "process";
  return object;
}

Object ObjectNames::of_address(const Watched& watched, const seccomp_data& call, const Target& target) const {
  const auto size = call.args[watched.shape->size] & 0xffffffffu;
  if (size > sizeof(sockaddr_storage)) return {};  // the kernel refuses it
  const auto bytes = target.memory(call.args[watched.shape->path], size);
  if (!bytes) return unresolved(watched.socket_family, bytes.error().message);
  const auto address = address_text(*bytes);
  if (!address) return {};
  if (address->starts_with(unix_prefix)) return of_unix_address(watched, *address, target);
  const auto copy = target.duplicate(argument(call, watched.fd));
  if (!copy) return unresolved(watched.socket_family, copy.error().message);
  const auto kind = class_of_socket(copy->get());
  if (kind != "socket-tcp" && !aimed_at(watched.socket_family)) return {};
  auto object = elsewhere(watched.socket_family, kind, *address);
  if (kind == "socket-tcp") {
    const auto known = peers_.find(*address);
    object.state = Object::State::site;
    object.resource = known == peers_.end() ? *address : known->second;
  }
  set_address(object, *address);
  return object;
}

Object ObjectNames::of_unix_address(const Watched& watched, const std::string& address, const Target& target) const {
  const auto path = address.substr(unix_prefix.size());
  Object object;
  if (!path.empty() && path.front() == '/') object = of_file(watched, {normal_path(path), false}, target);
  // Elsewhere it is only for a rule that asks for unix sockets: every program tries some, such as nscd's.
  const auto in_data_folder = object.state == Object::State::site && object.resource.starts_with("data:");
  if (!in_data_folder) {
    if (!aimed_at(watched.socket_family)) return {};
    object = elsewhere(watched.socket_family, "", address);
  }
  const auto named_by = object.path;  // a site by its path, everything else by its address
  object.family = watched.socket_family;
  object.kind = "socket-unix";
  set_address(object, address);
  object.path = named_by;
  object.socket = !in_data_folder;
  return object;
}

Object ObjectNames::of_file(const Watched& watched, const Place& place, const Target& target) const {
  auto seen = as_seen(place.path);
  auto resource = classes_.of(seen);
  std::string under;
  if (resource.empty() && place.by_kernel) {
    const auto root = target.root_path();
    if (!root) return unresolved(watched.file_family, root.error().message);
    under = *root;
    if (*root != "/" && place.path.starts_with(*root + "/")) {
      seen = as_seen(place.path.substr(root->size()));
      resource = classes_.of(seen);
    }
  }
  Object object;
  if (!resource.empty())
    object = site(watched.file_family, resource, seen);
  else if (aimed_at(watched.file_family))
    object = elsewhere(watched.file_family, "file", seen);
  object.under = std::move(under);
  return object;
}

Object ObjectNames::of_socket(const Watched& watched, const seccomp_data& call, const Target& target) const {
  const auto copy = target.duplicate(argument(call, watched.fd));
  if (!copy) return unresolved(watched.socket_family, copy.error().message);
  const auto fd = copy->get();
  const auto kind = class_of_socket(fd);
  const auto accepts = watched.socket_family == "accept";
  if (kind == "socket-tcp") {
    const auto address = accepts ? address_by(::getsockname, fd) : address_by(::getpeername, fd);
    // A client's port is drawn by the kernel and would make a new site of each connection.
    const auto known = peers_.find(address);
    const auto resource = accepts                 ? "listener:" + address.substr(address.rfind(':') + 1)
                          : known == peers_.end() ? "socket"
                                                  : known->second;
    auto object = site(watched.socket_family, resource, address);
    object.kind = kind;
    set_address(object, address);
    return object;
  }
  if (!aimed_at(watched.socket_family)) return {};
  auto object = elsewhere(watched.socket_family, kind, "");
  object.socket = true;
  if (kind == "socket-udp") {
    set_datagram_address(object, call, target, fd);
  } else if (kind == "socket-unix") {
    auto address = accepts ? "" : address_by(::getpeername, fd);
    if (address.size() <= unix_prefix.size()) address = address_by(::getsockname, fd);
    if (accepts || address.size() > unix_prefix.size())
      set_address(object, address);
    else
      set_datagram_address(object, call, target, fd);
  }
  return object;
}

void ObjectNames::set_datagram_address(Object& object, const seccomp_data& call, const Target& target,
                                       int socket) const {
  const auto destination = named_destination(call, target);
  if (!destination) {
    object.doubt = destination.error().message;
  } else if (destination->empty()) {
    set_address(object, address_by(::getpeername, socket));
  } else if (const auto address = address_text(*destination)) {
    set_address(object, *address);
  }
}

void ObjectNames::set_address(Object& object, std::string address) const {
  object.socket = true;
  object.path = address;
  const auto known = peers_.find(address);
  if (known != peers_.end()) object.peer = known->second;
  if (address.starts_with(std::string(unix_prefix) + "/"))
    object.socket_path = normal_path(address.substr(unix_prefix.size()));
  object.address = std::move(address);
}

void ObjectNames::ask(Object& object, const Watched& watched, const seccomp_data& call, const Target& target) const {
  const auto& asked = asked_.at(object.family);
  const auto take = [&](const auto& found, auto& into) {
    if (found)
      into = *found;
    else
      object.doubt = found.error().message;
  };
  if (asked.size) take(asked_size(call, target), object.size);
  const auto by_descriptor = watched.shape->object == CallShape::Object::descriptor && !object.socket;
  if (asked.offset) {
    object.offset = named_offset(call);
    if (watched.shape->source != none)
      take(passed_offset(call, target, watched.fd == watched.shape->source), object.offset);
    if (!object.offset && by_descriptor && (object.kind == "file" || object.kind == "directory"))
      take(standing_offset(target, argument(call, watched.fd), object.family == "write"), object.offset);
  }
  if (!asked.flags) return;
  take(asked_flags(call, target), object.flags);
  // A call on a file has none of its own kind: those that the file was opened with decide how it is carried out.
  if (!by_descriptor) return;
  if (const auto info = target.descriptor_info(argument(call, watched.fd)))
    object.flags = static_cast<std::uint64_t>(info->flags);
  else
    object.doubt = info.error().message;
}

std::string ObjectNames::as_seen(const std::string& path) const {
  if (real_data_folder_ == data_folder_) return path;
  const auto rest = below(path, real_data_folder_);
  if (rest.empty()) return path;
  return rest == "." ? data_folder_ : data_folder_ + "/" + rest;
}

}  // namespace leafcutter::node
