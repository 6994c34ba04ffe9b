#include "actors/trust/key_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;
using base::Status;

constexpr const char* authority_key_file = "authority.key";
constexpr const char* authority_file = "authority.crt";
constexpr const char* identity_file = "identity.pem";  ///< certificate and private key, so that both change at once
constexpr const char* campaign_key_file = "campaign.key";
constexpr const char* campaign_file = "campaign.pub";
constexpr const char* roll_file = "roll.json";
constexpr const char* lock_file = "lock";
constexpr std::array key_files = {authority_key_file, authority_file, identity_file,
                                  campaign_key_file,  campaign_file,  roll_file};

constexpr std::size_t key_file_bytes = 64 * 1024;
constexpr std::size_t roll_bytes = 64u << 20;
constexpr std::chrono::hours authority_validity{24 * 365 * 10};
constexpr auto look_again_after = std::chrono::milliseconds(200);

Error unsafe(const std::string& what) { return Error{ErrorCode::bad_input, what}; }

std::string octal_mode(mode_t mode) {
  std::string text;
  for (int shift = 6; shift >= 0; shift -= 3) text += static_cast<char>('0' + (mode >> shift & 7));
  return text;
}

Status check_folder(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    if (errno != ENOENT) return base::system_error("look at " + path, errno);
    return unsafe("there is no folder " + path +
                  "; `leafcutter keys init` makes one for a fleet, `leafcutter keys join` one for a host");
  }
  if (!S_ISDIR(found.st_mode)) return unsafe(path + " is not a folder");
  if (found.st_uid != ::geteuid() && found.st_uid != 0)
    return unsafe("the folder " + path + " belongs to user " + std::to_string(found.st_uid) +
                  ", who could put other keys there; one of your own would do");
  if ((found.st_mode & 022) != 0)
    return unsafe("others can write the folder " + path + " (mode " + octal_mode(found.st_mode) + "); chmod go-w " +
                  path + " would do");
  return base::ok();
}

Expected<std::string> read_all(const std::string& path, std::size_t at_most, bool secret) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat found {};
  if (!fd || ::fstat(fd.get(), &found) != 0) return base::system_error("cannot read " + path, errno);
  if (!S_ISREG(found.st_mode)) return unsafe(path + " is not a file");
  if (secret && (found.st_mode & 077) != 0)
    return unsafe("others can read the key " + path + " (mode " + octal_mode(found.st_mode) + "); chmod 600 " + path +
                  " would do, unless it has been read already: then a new key");
  std::string bytes(at_most + 1, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const auto count = ::read(fd.get(), bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::system_error("cannot read " + path, errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > at_most) return unsafe(path + " is larger than any file of keys");
  bytes.resize(size);
  return bytes;
}

/// A file that was not there, readable by its owner alone, on the disk when it returns.
Status write_new(const std::string& path, std::string_view bytes) {
  const base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return base::system_error("cannot create " + path, errno);
  while (!bytes.empty()) {
    const auto count = ::write(fd.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::system_error("cannot write " + path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  if (::fsync(fd.get()) != 0) return base::system_error("cannot sync " + path, errno);
  return base::ok();
}

Status replace_file(const std::string& path, std::string_view bytes) {
  const auto beside = path + ".new";
  // What a process that was killed had left.
  if (::unlink(beside.c_str()) != 0 && errno != ENOENT) return base::system_error("cannot remove " + beside, errno);
  if (auto written = write_new(beside, bytes); !written) return written;
  if (::rename(beside.c_str(), path.c_str()) != 0) return base::system_error("cannot rename " + beside, errno);
  const base::UniqueFd folder(::open(path.substr(0, path.rfind('/')).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return base::system_error("cannot sync the folder of " + path, errno);
  return base::ok();
}

/// One step of several, of which the first failure counts.
struct Steps {
  Status status = base::ok();
  template <class Step>
  Steps& then(Step step) {
    if (status) status = step();
    return *this;
  }
  /// The value, or its error noted.
  template <class T>
  T take(Expected<T> value) {
    if (value) return std::move(*value);
    if (status) status = value.error();
    return T{};
  }
};

}  // namespace

std::int64_t seconds_of(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

Expected<KeyFolder> KeyFolder::open(const std::string& path) {
  if (const auto safe = check_folder(path); !safe) return safe.error();
  KeyFolder folder(path);
  if (::access(folder.file(identity_file).c_str(), F_OK) != 0) {
    return unsafe("there are no keys in " + path +
                  "; `leafcutter keys init` makes those of a fleet, `leafcutter keys join` those of a host");
  }
  if (const auto material = folder.material(); !material) return material.error();
  return folder;
}

Status KeyFolder::check_empty(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return base::system_error("cannot make " + path, errno);
  if (auto safe = check_folder(path); !safe) return safe;
  for (const auto* name : key_files) {
    if (::access((path + "/" + name).c_str(), F_OK) != 0) continue;
    return unsafe("there is a " + std::string(name) + " in " + path +
                  " already, and no key is ever overwritten; another folder would do");
  }
  return base::ok();
}

Expected<KeyFolder> KeyFolder::init(const std::string& path, const std::string& name, WallTime now) {
  if (const auto named = check_peer_name(name); !named) return named.error();
  if (const auto empty = check_empty(path); !empty) return empty.error();
  Steps steps;
  const auto authority = steps.take(new_key()), own = steps.take(new_key()), campaign = steps.take(new_key());
  if (!steps.status) return steps.status.error();
  const auto certificate =
      steps.take(issue_authority(*authority, "leafcutter " + name, valid_for(now, authority_validity)));
  if (!steps.status) return steps.status.error();
  const Identity identity{Role::coordinator, name};
  const auto own_certificate =
      steps.take(issue(identity, *own, *certificate, *authority, valid_for(now, peer_validity)));
  if (!steps.status) return steps.status.error();
  Roll roll;
  roll.keys.push_back({identity, fingerprint(*own), seconds_of(now), seconds_of(expiry_of(*own_certificate)), 0, 0});
  const auto put = [&](const char* file, std::string text) {
    steps.then([&] { return write_new(path + "/" + file, text); });
  };
  put(authority_key_file, steps.take(private_pem(*authority)));
  put(authority_file, steps.take(pem(*certificate)));
  put(campaign_key_file, steps.take(private_pem(*campaign)));
  put(campaign_file, steps.take(public_pem(*campaign)));
  put(roll_file, to_json(roll));
  put(identity_file, steps.take(pem(*own_certificate)) + steps.take(private_pem(*own)));
  if (!steps.status) return steps.status.error();
  return KeyFolder(path);
}

Expected<KeyFolder> KeyFolder::keep(const std::string& path, const std::string& certificate, const std::string& key,
                                    const std::string& authority, const std::string& campaign) {
  Steps steps;
  steps.then([&] { return check_empty(path); })
      .then([&] { return write_new(path + "/" + authority_file, authority); })
      .then([&] { return write_new(path + "/" + campaign_file, campaign); })
      .then([&] { return write_new(path + "/" + identity_file, certificate + key); });
  if (!steps.status) return steps.status.error();
  return open(path);
}

bool KeyFolder::is_authority() const { return ::access(file(authority_key_file).c_str(), F_OK) == 0; }

Expected<TlsMaterial> KeyFolder::material() const {
  Steps steps;
  const auto both = steps.take(read_all(file(identity_file), key_file_bytes, true));
  const auto authority = steps.take(read_all(file(authority_file), key_file_bytes, false));
  if (!steps.status) return steps.status.error();
  // PEM names its blocks: each reader finds its own.
  return TlsMaterial{both, both, authority};
}

Expected<Identity> KeyFolder::identity() const {
  const auto own = material();
  if (!own) return own.error();
  const auto certificate = certificate_from_pem(own->certificate);
  if (!certificate) return certificate.error();
  return identity_of(**certificate);
}

Status KeyFolder::replace_identity(const std::string& certificate, const std::string& key) const {
  return replace_file(file(identity_file), certificate + key);
}

Expected<KeyPtr> KeyFolder::authority_key() const {
  const auto text = read_all(file(authority_key_file), key_file_bytes, true);
  if (!text)
    return unsafe(path_ + " is not the folder of a fleet's authority: " + text.error().message +
                  "; the one that `leafcutter keys init` made would do");
  return private_from_pem(*text);
}

Expected<CertificatePtr> KeyFolder::authority_certificate() const {
  const auto text = read_all(file(authority_file), key_file_bytes, false);
  if (!text) return text.error();
  return certificate_from_pem(*text);
}

Expected<KeyPtr> KeyFolder::campaign_key() const {
  const auto text = read_all(file(campaign_key_file), key_file_bytes, true);
  if (!text) return text.error();
  return private_from_pem(*text);
}

Expected<std::string> KeyFolder::campaign_public_pem() const {
  return read_all(file(campaign_file), key_file_bytes, false);
}

Expected<Roll> KeyFolder::roll() const {
  const auto text = read_all(file(roll_file), roll_bytes, false);
  if (!text) return text.error();
  auto roll = roll_from_json(*text);
  if (!roll) return Error{roll.error().code, file(roll_file) + ": " + roll.error().message};
  return roll;
}

Status KeyFolder::change_roll(const std::function<Status(Roll&)>& change) const {
  const base::UniqueFd lock(::open(file(lock_file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  // Others hold it for as long as a write takes.
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) return base::system_error("cannot lock " + file(lock_file), errno);
  auto now = roll();
  if (!now) return now.error();
  if (auto changed = change(*now); !changed) return changed;
  return replace_file(file(roll_file), to_json(*now));
}

Status Gate::admit(const Peer& peer) {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (!roll_ || now - looked_ >= look_again_after) {
    looked_ = now;
    struct stat found {};
    const auto path = folder_.path() + "/" + roll_file;
    const bool there = ::stat(path.c_str(), &found) == 0;
    const auto seen = !there ? std::string("none")
                             : std::to_string(found.st_ino) + " " + std::to_string(found.st_size) + " " +
                                   std::to_string(found.st_mtim.tv_sec) + "." + std::to_string(found.st_mtim.tv_nsec);
    if (!roll_ || seen != seen_) {
      roll_.emplace(folder_.roll());
      seen_ = seen;
    }
  }
  if (!*roll_) return Error{ErrorCode::io, "the roll cannot be read"};
  return actors::admit(**roll_, peer.identity, peer.key, seconds_of(std::chrono::system_clock::now()));
}

}  // namespace leafcutter::actors
