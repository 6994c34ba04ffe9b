// Enrolment: a host makes its own key and has it certified, against a join token or against the key that it replaces.
// The server is one thread that waits for nobody: whoever is slow, silent or talks of other things is closed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/trust/enrolment_message.hpp"
#include "actors/trust/join_token.hpp"
#include "actors/trust/key_folder.hpp"
#include "base/error.hpp"

namespace leafcutter::actors {

struct EnrolmentCounters {
  std::uint64_t accepted = 0;  ///< connections
  std::uint64_t enrolled = 0;  ///< keys, new and replacing
  std::uint64_t refused = 0;   ///< asked, and told why not
  std::uint64_t broken = 0;    ///< no handshake, too slow, too many at once, no message of enrolment
};

class EnrolmentServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;
    std::chrono::milliseconds within = std::chrono::seconds(5);  ///< for all that a visitor has to say
    std::size_t visitors_at_most = 32;
    std::function<void(const std::string&)> on_news = {};  ///< a sentence for people, from the server's thread
  };
  /// `folder` is an authority's. Errors: io (cannot listen), those of the folder.
  static base::Expected<std::unique_ptr<EnrolmentServer>> start(const KeyFolder& folder, Options options);
  virtual ~EnrolmentServer();
  virtual std::uint16_t port() const = 0;
  virtual EnrolmentCounters counters() const = 0;
};

/// What an authority answers; the roll is changed by it. `shown`: the admitted peer of the connection, or null. The
/// sentence is for people.
EnrolmentAnswer answer_enrolment(const KeyFolder& folder, const EnrolmentRequest& request, const Peer* shown,
                                 WallTime now, std::string& sentence);

/// Where an authority answers.
struct EnrolmentDoor {
  std::string host;
  std::uint16_t port = 0;
  std::chrono::milliseconds within = std::chrono::seconds(10);
};

/// Makes a key, has it certified and keeps it all in `folder`, which has no keys yet. Whoever answers must be of the
/// token's authority: before that the secret is not told. Errors: io, timeout, protocol, bad_input (refused).
base::Expected<KeyFolder> join(const EnrolmentDoor& door, const JoinToken& token, const std::string& folder);

/// Replaces the folder's key by a new one. The old one stays good for `overlap`.
base::Status rotate_identity(const EnrolmentDoor& door, const KeyFolder& folder, std::chrono::seconds overlap);

/// The same for the identity in an authority's own folder.
base::Status rotate_own(const KeyFolder& folder, std::chrono::seconds overlap, WallTime now);

}  // namespace leafcutter::actors
