#include "node/host/actions/recipe.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>

#include "base/digest.hpp"
#include "base/random.hpp"
#include "base/text.hpp"

namespace leafcutter::node::host {
namespace {

using base::Error;
using base::ErrorCode;

constexpr std::uint64_t megabyte = std::uint64_t{1} << 20;
constexpr std::size_t largest_configuration = 16 * megabyte;

Error cannot(const std::string& why) { return {ErrorCode::unavailable, why, {}}; }

/// The decision has read it: it is a number.
std::uint64_t number_in_request(const Request& request, const char* name) {
  std::uint64_t value = 0;
  if (const auto found = request.parameters.find(name); found != request.parameters.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  return value;
}

std::uint64_t available_megabytes() {
  const auto text = base::read_file("/proc/meminfo");
  unsigned long long kilobytes = 0;
  const auto at = text ? text->find("MemAvailable:") : std::string::npos;
  if (at == std::string::npos || std::sscanf(text->c_str() + at, "MemAvailable: %llu", &kilobytes) != 1) return 0;
  return kilobytes / 1024;
}

base::Expected<Recipe> cpu_recipe(const Pressure& limits, const Request& request) {
  Recipe out;
  out.json = {
      {"kind", "workers"}, {"work", "burn"}, {"count", number_in_request(request, "workers")}, {"nice", limits.nice}};
  out.lasts = request.duration;
  return out;
}

base::Expected<Recipe> memory_recipe(const Pressure& limits, const Request& request) {
  const auto wanted = number_in_request(request, "megabytes"), available = available_megabytes();
  if (available < wanted + limits.reserve)
    return cannot(std::to_string(available) + " megabytes of memory are available; " + std::to_string(wanted) +
                  " and a reserve of " + std::to_string(limits.reserve) + " would be needed");
  Recipe out;
  out.json = {{"kind", "workers"}, {"work", "hold"}, {"count", 1}, {"bytes", wanted * megabyte}};
  out.lasts = request.duration;
  return out;
}

base::Expected<Recipe> disk_recipe(const Pressure& limits, const Request& request, const std::string& id) {
  const auto& folder = request.parameters.at("folder");
  struct statvfs about {};
  if (::statvfs(folder.c_str(), &about) != 0) return cannot(base::system_error(folder, errno).message);
  const auto free = std::uint64_t{about.f_bavail} * about.f_frsize / megabyte;
  const auto wanted = number_in_request(request, "megabytes");
  if (free < wanted + limits.reserve)
    return cannot(std::to_string(free) + " megabytes are free in " + folder + "; " + std::to_string(wanted) +
                  " and a reserve of " + std::to_string(limits.reserve) + " would be needed");
  Recipe out;
  out.json = {{"kind", "fill"}, {"path", folder + "/.leafcutter-fill-" + id}, {"bytes", wanted * megabyte}};
  out.lasts = request.duration;
  return out;
}

base::Expected<Recipe> network_recipe(const Profile& profile, const Request& request, const std::string& id) {
  const auto& interface = request.parameters.at("interface");
  const auto delay = request.parameters.contains("delay")
                         ? base::parse_duration(request.parameters.at("delay"))
                         : base::Expected<std::chrono::nanoseconds>(std::chrono::nanoseconds(0));
  if (!delay) return cannot(delay.error().message);
  const auto loss = number_in_request(request, "loss"), rate = number_in_request(request, "rate");
  if (const auto able = can_shape(delay->count() > 0 || loss > 0, rate > 0, !profile.management.empty()); !able)
    return able.error();
  const auto root = root_queue(interface);
  if (!root) return root.error();
  if (root->handle != "0:")
    return cannot("the root queue of " + interface + " is " + root->kind + " " + root->handle +
                  ", which somebody else has set; it is left alone");
  char handle[8] = {};
  std::snprintf(handle, sizeof handle, "%x", static_cast<unsigned>(base::fnv1a(id) % 0xeffe + 1));
  Recipe out;
  out.json = {{"kind", "shape"},      {"interface", interface},           {"handle", handle},
              {"loss", loss},         {"delay", delay->count()},          {"rate", rate},
              {"before", root->kind}, {"namespace", network_namespace()}, {"management", profile.management}};
  out.lasts = request.duration;
  return out;
}

base::Expected<Recipe> configuration_recipe(const Profile& profile, const Request& request, const State& state,
                                            const std::string& id) {
  const auto& entry = profile.configurations.at(request.parameters.at("name"));
  const auto& variant = entry.variants.at(request.parameters.at("variant"));
  const auto content = base::read_file(variant.content);
  if (!content) return cannot(content.error().message);
  if (content->size() > largest_configuration) return cannot(variant.content + " is larger than 16 megabytes");
  if (const auto found = base::sha256(*content); found != variant.sha256)
    return cannot(variant.content + " has the digest " + found + ", the profile pins " + variant.sha256);
  struct stat about {};
  const bool there = ::lstat(entry.file.c_str(), &about) == 0;
  if (!there && errno != ENOENT) return cannot(base::system_error(entry.file, errno).message);
  if (there && (!S_ISREG(about.st_mode) || about.st_size > static_cast<off_t>(largest_configuration)))
    return cannot(entry.file + " is no regular file of up to 16 megabytes");
  std::string before;
  if (there) {
    const auto bytes = base::read_file(entry.file);
    if (!bytes) return cannot(bytes.error().message);
    before = base::sha256(*bytes);
    if (const auto kept = write_durably(state.path("kept/" + id + ".before"), *bytes); !kept) return kept.error();
  }
  if (const auto kept = write_durably(state.path("kept/" + id + ".variant"), *content); !kept) return kept.error();
  const auto slash = entry.file.rfind('/');
  Recipe out;
  out.json = {{"kind", "configuration"},
              {"path", entry.file},
              {"temporary", entry.file.substr(0, slash + 1) + ".leafcutter-" + id},
              {"before", before},
              {"after", variant.sha256},
              {"mode", there ? about.st_mode & 07777 : 0644},
              {"uid", there ? about.st_uid : ::geteuid()},
              {"gid", there ? about.st_gid : ::getegid()}};
  if (const auto* reload = profile.command(entry.reload))
    out.json["reload"] = to_json(command_line_of(*reload, *reload->fixed_vector()));
  out.lasts = request.duration;
  return out;
}

/// The service is well, or is brought back.
base::Expected<Recipe> service_recipe(const Profile& profile, const std::string& name) {
  const auto& entry = profile.services.at(name);
  const auto* healthy = profile.command(entry.healthy);
  const auto* recover = profile.command(entry.recover);
  Recipe out;
  out.json = {{"kind", "service"},
              {"service", name},
              {"healthy", to_json(command_line_of(*healthy, *healthy->fixed_vector()))},
              {"recover", to_json(command_line_of(*recover, *recover->fixed_vector()))},
              {"within", entry.within.count()}};
  out.lasts = entry.within * 2 + healthy->within + recover->within;
  return out;
}

base::Expected<Recipe> signal_recipe(const Profile& profile, const Request& request) {
  const auto& target = profile.signal.at(request.parameters.at("target"));
  const auto& signal = request.parameters.at("signal");
  auto held = held_process(target.pid_file, target.process);
  if (!held) return held.error();
  Recipe out;
  if (is_destructive_signal(signal)) {
    auto service = service_recipe(profile, target.service);
    if (!service) return service;
    out = std::move(*service);
  } else {
    out.json = {{"kind", signal == "STOP" ? "stop" : "nothing"}};
    out.lasts = signal == "STOP" ? request.duration : std::chrono::seconds(30);
  }
  out.json["pid"] = held->process.pid;
  out.json["started"] = held->process.started;
  out.json["signal"] = signal;
  out.process = std::move(held->handle);
  return out;
}

base::Expected<Recipe> restart_recipe(const Profile& profile, const Request& request) {
  const auto& name = request.parameters.at("service");
  auto out = service_recipe(profile, name);
  const auto& entry = profile.services.at(name);
  const auto* command = profile.command(request.action == "restart" ? entry.restart : entry.recover);
  out->json["line"] = to_json(command_line_of(*command, *command->fixed_vector()));
  out->json["at-once"] = request.action == "recover";
  out->lasts += command->within;
  return out;
}

base::Expected<Recipe> command_recipe(const Profile& profile, const Request& request, const Decision& decision) {
  const auto* entry = profile.command(decision.command);
  Recipe out;
  out.json = {{"kind", "command"}, {"work", "command"}, {"line", to_json(command_line_of(*entry, request.argv))}};
  out.lasts = entry->within + std::chrono::seconds(10);
  return out;
}

}  // namespace

CommandLine command_line_of(const CommandEntry& entry, std::vector<std::string> argv) {
  return {std::move(argv), entry.sha256, entry.environment, entry.folder, entry.within};
}

base::Expected<Recipe> prepare_recipe(const Profile& profile, const Request& request, const Decision& decision,
                                      const State& state, const std::string& id) {
  if (request.action == "signal") return signal_recipe(profile, request);
  if (request.action == "cpu") return cpu_recipe(*profile.cpu, request);
  if (request.action == "memory") return memory_recipe(*profile.memory, request);
  if (request.action == "disk") return disk_recipe(*profile.disk, request, id);
  if (request.action == "network") return network_recipe(profile, request, id);
  if (request.action == "configure") return configuration_recipe(profile, request, state, id);
  if (request.action == "restart" || request.action == "recover") return restart_recipe(profile, request);
  if (request.action == "command") return command_recipe(profile, request, decision);
  return cannot("action \"" + request.action + "\" is not carried out here");
}

}  // namespace leafcutter::node::host
