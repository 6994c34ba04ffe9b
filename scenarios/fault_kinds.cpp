#include "scenarios/fault_kinds.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "scenarios/error_numbers.hpp"

namespace leafcutter::scenarios {
namespace {

using Type = FaultParameter::Type;

std::vector<std::string> all_families() {
  std::vector<std::string> names;
  for (const auto& family : syscall_families()) names.push_back(family.name);
  return names;
}

std::string_view type_name(Type type) {
  switch (type) {
    case Type::duration: return "duration";
    case Type::error_name: return "error name";
    case Type::count: return "count";
  }
  return "?";
}

base::Error bad(const std::string& message) { return {base::ErrorCode::bad_input, message, {}}; }

base::Status check_param(const FaultKind& kind, const FaultParameter& parameter, const Value& value) {
  const auto where = "parameter \"" + parameter.name + "\" of fault \"" + kind.name + "\": ";
  switch (parameter.type) {
    case Type::duration: {
      if (!value.is_string()) return bad(where + "expected a duration such as 50ms");
      const auto duration = base::parse_duration(value.get<std::string>());
      if (!duration) return bad(where + duration.error().message);
      if (duration->count() == 0) return bad(where + "0s would change nothing");
      if (*duration > std::chrono::hours(1)) return bad(where + "more than 1h");
      return base::ok();
    }
    case Type::error_name: {
      if (!value.is_string()) return bad(where + "expected an error name such as EIO");
      const auto name = value.get<std::string>();
      if (error_number(name) != 0) return base::ok();
      const auto near = base::nearest(name, error_names());
      return bad(where + "unknown error \"" + name + "\"" + (near ? "; did you mean \"" + *near + "\"?" : ""));
    }
    case Type::count:
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() == 0)
        return bad(where + "expected a whole number from 1");
      return base::ok();
  }
  return base::ok();
}

}  // namespace

const std::vector<SyscallFamily>& syscall_families() {
  // `object` decides what a family means: `write` is for files, and sockets, which the same calls serve, belong to
  // `send`.
  static const std::vector<SyscallFamily> list = {
      {"read", {"read", "pread64", "readv", "preadv", "preadv2"}, "file", "reading a file"},
      {"write",
       {"write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "copy_file_range", "splice"},
       "file",
       "writing to a file"},
      {"open", {"open", "openat", "openat2", "creat"}, "file", "opening or creating a file"},
      {"fsync", {"fsync", "fdatasync", "sync_file_range", "msync", "syncfs"}, "file", "making a file durable"},
      {"rename",
       {"rename", "renameat", "renameat2", "link", "linkat"},
       "file",
       "renaming or linking a file; the site is the new name"},
      {"unlink", {"unlink", "unlinkat", "rmdir"}, "file", "removing a file or folder"},
      {"mkdir", {"mkdir", "mkdirat"}, "file", "making a folder"},
      {"truncate", {"truncate", "ftruncate"}, "file", "changing a file's length"},
      {"allocate", {"fallocate"}, "file", "reserving space for a file"},
      {"connect", {"connect"}, "socket", "opening a connection"},
      {"accept", {"accept", "accept4"}, "socket", "taking a connection"},
      {"send",
       {"sendto", "sendmsg", "sendmmsg", "write", "writev", "sendfile", "splice"},
       "socket",
       "sending on a socket"},
      {"receive", {"recvfrom", "recvmsg", "recvmmsg", "read", "readv"}, "socket", "receiving from a socket"},
  };
  return list;
}

const SyscallFamily* syscall_family(std::string_view name) {
  for (const auto& family : syscall_families())
    if (family.name == name) return &family;
  return nullptr;
}

const std::vector<FaultKind>& fault_kinds() {
  static const std::vector<FaultKind> list = {
      {.name = "errno",
       .mechanism = Mechanism::syscall,
       .about = "The call fails with an error and has no effect.",
       .operations = all_families(),
       .parameters = {{"error", Type::error_name, true, "the error, by name: EIO, ENOSPC, ..."}},
       .evidence = "call, path or peer, errno",
       .undo = "at once: the call has returned",
       .capability = "syscall-notify",
       .complexity = 1},
      {.name = "delay",
       .mechanism = Mechanism::syscall,
       .about = "The call takes longer, then goes through.",
       .operations = all_families(),
       .parameters = {{"for", Type::duration, true, "how long the call is held"}},
       .evidence = "call, path or peer, how long it was held",
       .undo = "when the time is over: the call went through",
       .capability = "syscall-notify",
       .complexity = 2},
      {.name = "crash-before",
       .mechanism = Mechanism::syscall,
       .about = "The service is killed at the call, before it takes effect.",
       .operations = all_families(),
       .kills = true,
       .evidence = "call, path or peer; the service's `exit` by signal 9 follows",
       .undo = "when the service has been restarted and is ready",
       .capability = "syscall-notify",
       .complexity = 2},
      {.name = "crash-after",
       .mechanism = Mechanism::syscall,
       .about = "The call takes effect, then the service is killed before it learns of it.",
       .operations = {"write", "open", "fsync", "rename", "unlink", "mkdir", "truncate", "allocate", "connect", "send"},
       .kills = true,
       .evidence = "call, path or peer, the call's result; the service's `exit` by signal 9 follows",
       .undo = "when the service has been restarted and is ready",
       .capability = "syscall-notify",
       .complexity = 3},
      {.name = "refuse",
       .mechanism = Mechanism::link,
       .about = "The connection is refused.",
       .operations = {"connect"},
       .evidence = "connection number, 0 bytes forwarded",
       .undo = "at once: later connections are let through",
       .capability = "network-namespace",
       .complexity = 1},
      {.name = "reset",
       .mechanism = Mechanism::link,
       .about = "The connection is reset; the request it carries does not go through.",
       .operations = {"request", "connect"},
       .evidence = "connection number, bytes seen",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 2},
      {.name = "blackhole",
       .mechanism = Mechanism::link,
       .about = "Nothing passes on the connection any more, in either direction, and nobody is told.",
       .operations = {"request", "connect"},
       .evidence = "bytes withheld",
       .undo = "when the caller closes the connection",
       .capability = "network-namespace",
       .complexity = 3},
      {.name = "latency",
       .mechanism = Mechanism::link,
       .about = "The request reaches the service later.",
       .operations = {"request", "connect"},
       .parameters = {{"for", Type::duration, true, "how much later, from its arrival"}},
       .evidence = "scheduled and actual delay",
       .undo = "when the request has been let go",
       .capability = "network-namespace",
       .complexity = 3},
      {.name = "lose-response",
       .mechanism = Mechanism::link,
       .about = "The request goes through and takes effect; its response is lost and the connection reset.",
       .operations = {"request"},
       .http_only = true,
       .evidence = "the response's status and length, the request forwarded",
       .undo = "with the connection",
       .capability = "network-namespace",
       .complexity = 3},
      {.name = "crash",
       .mechanism = Mechanism::process,
       .about = "The service is killed with SIGKILL just before a step of the workload, and restarted by its policy.",
       .operations = {"step"},
       .kills = true,
       .evidence = "pid, signal 9, the step",
       .undo = "when the service has been restarted and is ready",
       .capability = "user-namespace",
       .complexity = 1},
  };
  return list;
}

const FaultKind* fault_kind(std::string_view name) {
  for (const auto& kind : fault_kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

base::Status check_params(const FaultKind& kind, const Value& params) {
  if (!params.is_object()) return bad("the parameters of fault \"" + kind.name + "\" are a mapping");
  std::vector<std::string> known;
  for (const auto& parameter : kind.parameters) known.push_back(parameter.name);
  for (const auto& [given, value] : params.items()) {
    const auto found = std::find_if(kind.parameters.begin(), kind.parameters.end(),
                                    [&, name = given](const FaultParameter& p) { return p.name == name; });
    if (found == kind.parameters.end()) {
      const auto near = base::nearest(given, known);
      return bad("fault \"" + kind.name + "\" has no parameter \"" + given + "\"" +
                 (near            ? "; did you mean \"" + *near + "\"?"
                  : known.empty() ? "; it has none"
                                  : "; it has " + base::join_names(known)));
    }
    if (auto checked = check_param(kind, *found, value); !checked) return checked;
  }
  for (const auto& parameter : kind.parameters)
    if (parameter.required && !params.contains(parameter.name))
      return bad("fault \"" + kind.name + "\" needs \"" + parameter.name + "\": " + parameter.about);
  return base::ok();
}

int error_number(std::string_view name) {
  for (const auto& entry : error_numbers)
    if (entry.name == name) return entry.number;
  return 0;
}

std::string error_name(int number) {
  for (const auto& entry : error_numbers)
    if (entry.number == number) return std::string(entry.name);
  return std::to_string(number);
}

const std::vector<std::string>& error_names() {
  static const auto names = [] {
    std::vector<std::string> list;
    for (const auto& entry : error_numbers) list.emplace_back(entry.name);
    return list;
  }();
  return names;
}

std::string faults_page() {
  std::string out =
      "# Faults\n\nEvery kind of fault that a scenario can ask for, what proves that it struck, and how it ends. "
      "Generated from the "
      "one definition in\n`scenarios/fault_kinds.cpp`; `leafcutter faults` prints it.\n\n"
      "| fault | what happens | strikes at | parameters | evidence in `fault.fired` | undone | needs |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const auto& kind : fault_kinds()) {
    std::string parameters;
    for (const auto& parameter : kind.parameters)
      parameters += (parameters.empty() ? "" : "; ") +
                    ("`" + parameter.name + "` (" + std::string(type_name(parameter.type)) + "): ") + parameter.about;
    auto operations = kind.mechanism == Mechanism::syscall && kind.operations == all_families()
                          ? "every syscall family"
                          : base::join_names(kind.operations);
    if (kind.http_only) operations += " (HTTP ports)";
    out += "| `" + kind.name + "` | " + kind.about + " | " + operations + " | " +
           (parameters.empty() ? "none" : parameters) + " | " + kind.evidence + " | " + kind.undo + " | " +
           kind.capability + " |\n";
  }
  out +=
      "\n## Syscall families\n\nA family acts on one class of objects only: `write` never strikes a socket, `send` "
      "never strikes a file.\n\n"
      "| family | object | what it is | calls |\n|---|---|---|---|\n";
  for (const auto& family : syscall_families())
    out += "| `" + family.name + "` | " + family.object + " | " + family.about + " | " +
           base::join_names(family.calls) + " |\n";
  return out;
}

}  // namespace leafcutter::scenarios
