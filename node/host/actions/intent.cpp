#include "node/host/actions/intent.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "base/signature.hpp"
#include "base/text.hpp"

namespace leafcutter::node::host {
namespace {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

constexpr std::size_t most_intents = 1024;
constexpr int state_tick_ms = 2;

base::Status make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return base::system_error("cannot make " + path, errno);
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0) return base::system_error("cannot look at " + path, errno);
  if (!S_ISDIR(about.st_mode) || about.st_uid != ::geteuid() || (about.st_mode & 022) != 0)
    return Error{ErrorCode::bad_input,
                 path + " is no folder that is ours alone to write to; another one, or chmod 700, would do",
                 {}};
  return base::ok();
}

base::Status sync_state_folder(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return base::system_error("cannot sync " + path, errno);
  return base::ok();
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// A new file beside `path`, synced, held, and then renamed over it: the lock goes along.
base::Expected<UniqueFd> write_held(const std::string& path, std::string_view bytes) {
  const auto temporary = path + ".new-" + std::to_string(::getpid());
  UniqueFd fd(::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return base::system_error("cannot create " + temporary, errno);
  auto done = base::write_at(fd.get(), bytes, 0, temporary);
  if (done && ::fsync(fd.get()) != 0) done = base::system_error("cannot sync " + temporary, errno);
  if (done && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) done = base::system_error("cannot hold " + temporary, errno);
  if (done && ::rename(temporary.c_str(), path.c_str()) != 0)
    done = base::system_error("cannot rename to " + path, errno);
  if (done) done = sync_state_folder(parent_of(path));
  if (done) return fd;
  ::unlink(temporary.c_str());
  return done.error();
}

}  // namespace

std::int64_t boot_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

const std::string& boot_id() {
  static const auto id = [] {
    auto text = base::read_file("/proc/sys/kernel/random/boot_id");
    auto out = text ? *text : std::string("unknown");
    while (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
  }();
  return id;
}

Json to_json(const Intent& intent) {
  return {{"version", 1},
          {"id", intent.id},
          {"owner", intent.owner},
          {"session", intent.session},
          {"profile", intent.profile},
          {"action", intent.action},
          {"resource", intent.resource},
          {"boot", intent.boot},
          {"deadline", intent.deadline},
          {"recipe", intent.recipe}};
}

base::Expected<Intent> intent_from(const std::string& text) {
  const auto json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("version", Json()) != 1 || !json.contains("recipe") ||
      !json["recipe"].is_object())
    return Error{ErrorCode::protocol, "it is no intent of version 1", {}};
  try {
    return Intent{json.at("id").get<std::string>(),
                  json.at("owner").get<std::string>(),
                  json.at("session").get<std::string>(),
                  json.at("profile").get<std::string>(),
                  json.at("action").get<std::string>(),
                  json.at("resource").get<std::string>(),
                  json.at("boot").get<std::string>(),
                  json.at("deadline").get<std::int64_t>(),
                  json.at("recipe")};
  } catch (const Json::exception& error) {
    return Error{ErrorCode::protocol, std::string("it is no intent: ") + error.what(), {}};
  }
}

base::Expected<State> State::open(const std::string& folder) {
  std::error_code error;
  auto whole = std::filesystem::absolute(folder, error).lexically_normal().string();
  while (whole.size() > 1 && whole.back() == '/') whole.pop_back();
  std::filesystem::create_directories(parent_of(whole) + "/", error);
  for (const auto* part : {"", "/intents", "/kept", "/sessions"})
    if (const auto made = make_private_folder(whole + part); !made) return made.error();
  if (const auto synced = sync_state_folder(whole); !synced) return synced.error();
  State out;
  out.folder_ = std::move(whole);
  return out;
}

base::Expected<UniqueFd> State::lock(std::chrono::milliseconds patience) const {
  UniqueFd fd(::open(path("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return base::system_error("cannot open " + path("lock"), errno);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= deadline)
      return Error{ErrorCode::timeout,
                   path("lock") + " is held by another process for longer than " + base::format_duration(patience),
                   {}};
    ::poll(nullptr, 0, state_tick_ms);
  }
  return fd;
}

std::string State::intent_path(const std::string& id) const { return path("intents/" + id + ".json"); }

base::Expected<UniqueFd> State::write(const Intent& intent) const {
  return write_held(intent_path(intent.id), to_json(intent).dump(2) + "\n");
}

base::Expected<std::optional<UniqueFd>> State::hold(const std::string& id) const {
  UniqueFd fd(::open(intent_path(id).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return base::system_error("intent " + id, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return std::optional<UniqueFd>();
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0 || about.st_nlink == 0) return base::system_error("intent " + id, ENOENT);
  return std::optional<UniqueFd>(std::move(fd));
}

bool State::exists(const std::string& id) const { return ::access(intent_path(id).c_str(), F_OK) == 0; }

base::Status State::forget(const std::string& id) const {
  if (::unlink(intent_path(id).c_str()) != 0 && errno != ENOENT)
    return base::system_error("cannot remove intent " + id, errno);
  return sync_state_folder(path("intents"));
}

State::Listing State::list() const {
  Listing out;
  std::error_code error;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path("intents"), error))
    if (entry.path().extension() == ".json" && files.size() < most_intents) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    const auto text = base::read_file(file);
    if (!text && ::access(file.c_str(), F_OK) != 0) continue;  // gone meanwhile
    auto intent = text ? intent_from(*text) : base::Expected<Intent>(text.error());
    if (intent)
      out.intents.push_back(std::move(*intent));
    else
      out.unreadable.push_back(file + ": " + intent.error().message);
  }
  return out;
}

namespace {

/// Names may hold anything; files may not.
std::string session_file(const std::string& session, const std::string& profile) {
  return "sessions/" + base::sha256(boot_id() + "\n" + session + "\n" + profile).substr(0, 32) + ".json";
}

}  // namespace

std::vector<std::string> State::recovered(const std::string& session, const std::string& profile) const {
  const auto text = base::read_file(path(session_file(session, profile)));
  const auto json = text ? Json::parse(*text, nullptr, false) : Json();
  std::vector<std::string> out;
  if (json.is_array())
    for (const auto& service : json)
      if (service.is_string()) out.push_back(service.get<std::string>());
  return out;
}

base::Status State::note_recovered(const std::string& session, const std::string& profile,
                                   const std::string& service) const {
  auto services = recovered(session, profile);
  if (std::find(services.begin(), services.end(), service) != services.end()) return base::ok();
  services.push_back(service);
  return write_durably(path(session_file(session, profile)), Json(services).dump() + "\n");
}

std::string new_id() {
  std::array<char, 8> bytes{};
  std::size_t got = 0;
  while (got < bytes.size()) {
    const auto n = ::getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (n > 0) got += static_cast<std::size_t>(n);
  }
  return base::to_hex({bytes.data(), bytes.size()});
}

base::Status write_durably(const std::string& path, std::string_view bytes) {
  const auto written = write_held(path, bytes);
  if (!written) return written.error();
  return base::ok();
}

}  // namespace leafcutter::node::host
