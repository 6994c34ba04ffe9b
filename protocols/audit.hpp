// The audit log of host actions as bytes: a chain of records, each signed by the node that acted, and the anchors by
// which a coordinator says how far the chain had grown. Fields are length-prefixed, so no value can pass for two.
//
// A record is a frame: "LCA1", payload bytes and sequence (big-endian, 4 and 8 bytes), 4 bytes of the SHA-256 of those
// 16, the payload, 64 bytes of Ed25519. The payload names the SHA-256 of the frame before it. An anchor is the same
// with "LCN1".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/signature.hpp"

namespace leafcutter::protocols {

/// How a host action went; set where it was enforced, never read out of text.
enum class Outcome {
  none,       ///< not yet known
  success,    ///< it was carried out, and what it changed has been undone and seen gone
  denied,     ///< nothing ran
  failure,    ///< it ran, and did not do what it should
  timed_out,  ///< it ran, and was ended at its deadline
  lost        ///< whether or how far it ran is not known
};
const char* outcome_name(Outcome outcome);
std::optional<Outcome> outcome_named(std::string_view name);

struct AuditRecord {
  std::uint64_t sequence = 0;
  std::int64_t time = 0;  ///< nanoseconds since 1970, by the node's clock
  std::string node = {};
  std::string session = {};
  std::string owner = {};  ///< who asked
  std::string id = {};     ///< of the action; empty for the log's own records
  std::string action = {};
  std::string resource = {};
  std::string stage = {};  ///< "begin", "intent", "applied", "undone", "outcome", "torn", ...
  Outcome outcome = Outcome::none;
  std::string detail = {};
  std::string profile = {};   ///< its digest
  std::string previous = {};  ///< 32 bytes: SHA-256 of the frame before; zeros in the first. Filled in by seal_record

  bool operator==(const AuditRecord&) const = default;
};

/// What a coordinator has seen of a log.
struct AuditAnchor {
  std::uint64_t sequence = 0;  ///< of the last record that it covers
  std::int64_t time = 0;
  std::string node;
  std::string log;   ///< 32 bytes: SHA-256 of the log's first frame
  std::string head;  ///< 32 bytes: SHA-256 of the frame with that sequence

  bool operator==(const AuditAnchor&) const = default;
};

inline constexpr std::size_t audit_field_bytes = 64 * 1024;  ///< the longest field; longer ones are cut and say so
inline constexpr std::size_t audit_frame_bytes = 1024 * 1024;

/// The frame; `record.previous` must be set.
std::string seal_record(const AuditRecord& record, const base::SigningKey& key);
std::string seal_anchor(const AuditAnchor& anchor, const base::SigningKey& key);

/// One frame at the beginning of `bytes`, its form checked and nothing else.
struct AuditFrame {
  std::size_t size = 0;  ///< bytes of all of it
  std::uint64_t sequence = 0;
  std::string_view payload, signature;
  std::string hash;  ///< 32 bytes: SHA-256 of all of it
};
struct AuditPiece {
  enum class Kind { frame, torn, garbage } kind = Kind::garbage;
  AuditFrame frame;
  std::string why;
};
/// torn: `bytes` is a proper beginning of a frame, or zeros, as a crash leaves them. `anchor`: of "LCN1" frames.
AuditPiece read_frame(std::string_view bytes, bool anchor = false);
base::Expected<AuditRecord> decode_record(const AuditFrame& frame);
base::Expected<AuditAnchor> decode_anchor(const AuditFrame& frame);
bool signed_by(const AuditFrame& frame, std::string_view public_key, bool anchor = false);

struct AuditReport {
  enum class Flaw { none, altered, reordered, removed, truncated, wrong_key, torn } flaw = Flaw::none;
  std::uint64_t record = 0;  ///< the first bad one's number, from 0
  std::string why;
  std::uint64_t good = 0;  ///< records before it
  std::size_t good_bytes = 0;
  std::string key;  ///< 32 bytes: who signed
  std::string node;
  std::string first, head;     ///< hashes of the first and the last good frame
  std::uint64_t anchors = 0;   ///< that were compared
  std::uint64_t anchored = 0;  ///< records that they cover

  /// A torn tail is what a crash leaves: everything before it holds.
  bool intact() const { return flaw == Flaw::none || flaw == Flaw::torn; }
};
const char* flaw_name(AuditReport::Flaw flaw);

/// `key`: who must have signed; without, the one that the first record names. `anchors`: the bytes of an anchor file;
/// `anchor_key`: who must have signed those; without, any key that signed all of them.
struct AuditExpectation {
  std::optional<std::string> key;
  std::string anchors;
  std::optional<std::string> anchor_key;
};
AuditReport verify_audit(std::string_view log, const AuditExpectation& expectation = {});

/// The records as far as they can be read, unverified.
std::vector<AuditRecord> read_audit(std::string_view log);

/// What the first record of a log says in `detail`: the key that signs it.
std::string key_statement(std::string_view public_key);

}  // namespace leafcutter::protocols
