// Where keys are kept: a folder that nobody else can write, key files that nobody else can read. An authority's folder
// (`keys init`) has everything of a fleet; a peer's (`keys join`) has its own key and what it believes.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "actors/transport/tls_session.hpp"
#include "actors/trust/roll.hpp"
#include "base/error.hpp"

namespace leafcutter::actors {

class KeyFolder {
 public:
  /// Errors: bad_input (no such folder, others can write it, no keys in it), each with what would do.
  static base::Expected<KeyFolder> open(const std::string& path);

  /// Makes an authority, a campaign key and a coordinator's identity; the folder is made where there is none.
  /// Errors: bad_input (it holds keys already, others can write it).
  static base::Expected<KeyFolder> init(const std::string& path, const std::string& name, WallTime now);

  /// Keeps what enrolment gave: the identity's certificate with its private key, the authority's certificate and the
  /// campaigns' public key (all PEM). Errors: as init.
  static base::Status check_empty(const std::string& path);
  static base::Expected<KeyFolder> keep(const std::string& path, const std::string& certificate, const std::string& key,
                                        const std::string& authority, const std::string& campaign);

  const std::string& path() const { return path_; }
  bool is_authority() const;

  /// Read anew at each call: a key may have been rotated.
  base::Expected<TlsMaterial> material() const;
  base::Expected<Identity> identity() const;

  /// Puts another identity in place of the present one, in one step.
  base::Status replace_identity(const std::string& certificate, const std::string& key) const;

  // --- an authority's
  base::Expected<KeyPtr> authority_key() const;
  base::Expected<CertificatePtr> authority_certificate() const;
  base::Expected<KeyPtr> campaign_key() const;
  base::Expected<std::string> campaign_public_pem() const;  ///< a peer's, too
  base::Expected<Roll> roll() const;
  /// Reads, changes and writes it, one process at a time; nothing is written when `change` fails.
  base::Status change_roll(const std::function<base::Status(Roll&)>& change) const;

 private:
  explicit KeyFolder(std::string path) : path_(std::move(path)) {}
  std::string file(const char* name) const { return path_ + "/" + name; }
  std::string path_;
};

/// Answers who is on the roll now, quickly: the file is looked at again five times a second at most. Fails closed: an
/// unreadable roll admits nobody. May be asked from any thread.
class Gate {
 public:
  explicit Gate(KeyFolder folder) : folder_(std::move(folder)) {}
  base::Status admit(const Peer& peer);

 private:
  KeyFolder folder_;
  std::mutex mutex_;
  std::optional<base::Expected<Roll>> roll_;
  std::chrono::steady_clock::time_point looked_{};
  std::string seen_;  ///< the file's inode, size and time
};

std::int64_t seconds_of(WallTime time);

/// A certificate of ours is good for so long.
inline constexpr std::chrono::hours peer_validity{24 * 397};

}  // namespace leafcutter::actors
