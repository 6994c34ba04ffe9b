#include "protocols/audit.hpp"

#include <algorithm>
#include <array>

#include "base/digest.hpp"

namespace leafcutter::protocols {
namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;

constexpr std::string_view record_magic = "LCA1", anchor_magic = "LCN1";
constexpr std::string_view record_domain = "leafcutter audit record 1", anchor_domain = "leafcutter audit anchor 1";
constexpr std::size_t frame_head_bytes = 20;

std::string digest_of(std::string_view bytes) { return base::from_hex(base::sha256(bytes)); }

template <class Number>
void put_number(std::string& out, Number number) {
  for (std::size_t i = sizeof number; i-- > 0;) out += static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i));
}

std::uint64_t take_number(std::string_view bytes) {
  std::uint64_t out = 0;
  for (const char c : bytes) out = out << 8 | static_cast<unsigned char>(c);
  return out;
}

void put_field(std::string& out, std::string_view value) {
  constexpr std::string_view cut = " (cut)";
  const bool long_one = value.size() > audit_field_bytes;
  const auto kept = long_one ? value.substr(0, audit_field_bytes - cut.size()) : value;
  put_number(out, static_cast<std::uint32_t>(kept.size() + (long_one ? cut.size() : 0)));
  out += kept;
  if (long_one) out += cut;
}

void put_number_field(std::string& out, std::uint64_t value) {
  std::string bytes;
  put_number(bytes, value);
  put_field(out, bytes);
}

/// Takes fields off the front; everything after the first that is malformed is empty.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : bytes_(bytes) {}

  std::string text() {
    if (bytes_.size() < 4) return fail();
    const auto size = take_number(bytes_.substr(0, 4));
    if (size > audit_field_bytes || size > bytes_.size() - 4) return fail();
    std::string out(bytes_.substr(4, size));
    bytes_.remove_prefix(4 + size);
    return out;
  }
  std::uint64_t number() {
    const auto bytes = text();
    if (bytes.size() != 8) fail();
    return take_number(bytes);
  }
  bool complete() const { return good_ && bytes_.empty(); }

 private:
  std::string fail() {
    good_ = false;
    bytes_ = {};
    return {};
  }
  std::string_view bytes_;
  bool good_ = true;
};

/// What is signed: a record can never pass for an anchor, nor for anything else that this key signs.
std::string signed_text(std::string_view domain, std::string_view head, std::string_view payload) {
  std::string out;
  put_field(out, domain);
  out += head;
  out += payload;
  return out;
}

std::string frame_head(std::string_view magic, std::size_t size, std::uint64_t sequence) {
  std::string out(magic);
  put_number(out, static_cast<std::uint32_t>(size));
  put_number(out, sequence);
  return out + digest_of(out).substr(0, 4);
}

std::string seal(std::string_view magic, std::string_view domain, std::uint64_t sequence, const std::string& payload,
                 const base::SigningKey& key) {
  const auto head = frame_head(magic, payload.size(), sequence);
  return head + payload + key.sign(signed_text(domain, head, payload));
}

Error bad_frame(const std::string& what) { return {ErrorCode::protocol, what, {}}; }

struct OutcomeWord {
  Outcome outcome;
  const char* name;
};
constexpr std::array<OutcomeWord, 6> outcome_words = {{{Outcome::none, ""},
                                                       {Outcome::success, "success"},
                                                       {Outcome::denied, "denied"},
                                                       {Outcome::failure, "failure"},
                                                       {Outcome::timed_out, "timed-out"},
                                                       {Outcome::lost, "lost"}}};

}  // namespace

const char* outcome_name(Outcome outcome) {
  for (const auto& word : outcome_words)
    if (word.outcome == outcome) return word.name;
  return "?";
}

std::optional<Outcome> outcome_named(std::string_view name) {
  for (const auto& word : outcome_words)
    if (name == word.name) return word.outcome;
  return std::nullopt;
}

std::string seal_record(const AuditRecord& record, const base::SigningKey& key) {
  std::string payload;
  put_number_field(payload, static_cast<std::uint64_t>(record.time));
  for (const auto* field :
       {&record.node, &record.session, &record.owner, &record.id, &record.action, &record.resource, &record.stage})
    put_field(payload, *field);
  put_field(payload, outcome_name(record.outcome));
  for (const auto* field : {&record.detail, &record.profile, &record.previous}) put_field(payload, *field);
  return seal(record_magic, record_domain, record.sequence, payload, key);
}

std::string seal_anchor(const AuditAnchor& anchor, const base::SigningKey& key) {
  std::string payload;
  put_number_field(payload, static_cast<std::uint64_t>(anchor.time));
  for (const auto& field : {anchor.node, anchor.log, anchor.head, key.public_key()}) put_field(payload, field);
  return seal(anchor_magic, anchor_domain, anchor.sequence, payload, key);
}

AuditPiece read_frame(std::string_view bytes, bool anchor) {
  const auto magic = anchor ? anchor_magic : record_magic;
  const auto torn = [](const char* why) { return AuditPiece{AuditPiece::Kind::torn, {}, why}; };
  const auto garbage = [](const char* why) { return AuditPiece{AuditPiece::Kind::garbage, {}, why}; };
  if (std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == '\0'; })) return torn("zeros");
  const auto seen = bytes.substr(0, frame_head_bytes);
  if (seen.substr(0, magic.size()) != magic.substr(0, seen.size())) return garbage("it does not begin like a record");
  if (seen.size() < frame_head_bytes) return torn("the beginning of a record");
  AuditPiece piece;
  auto& frame = piece.frame;
  const auto size = take_number(seen.substr(4, 4));
  frame.sequence = take_number(seen.substr(8, 8));
  if (digest_of(seen.substr(0, 16)).substr(0, 4) != seen.substr(16, 4)) return garbage("its head is damaged");
  if (size > audit_frame_bytes) return garbage("it is longer than a record can be");
  frame.size = frame_head_bytes + size + base::signature_bytes;
  if (frame.size > bytes.size()) {
    // The rest of a log, hidden behind a length that runs past its end, is not what a crash leaves.
    for (auto at = bytes.find(magic, 1); at != std::string_view::npos; at = bytes.find(magic, at + 1))
      if (const auto inner = bytes.substr(at, frame_head_bytes);
          inner.size() == frame_head_bytes && digest_of(inner.substr(0, 16)).substr(0, 4) == inner.substr(16, 4))
        return garbage("its length hides other records");
    return torn("the beginning of a record");
  }
  frame.payload = bytes.substr(frame_head_bytes, size);
  frame.signature = bytes.substr(frame_head_bytes + size, base::signature_bytes);
  frame.hash = digest_of(bytes.substr(0, frame.size));
  piece.kind = AuditPiece::Kind::frame;
  return piece;
}

Expected<AuditRecord> decode_record(const AuditFrame& frame) {
  FieldReader reader(frame.payload);
  AuditRecord out;
  out.sequence = frame.sequence;
  out.time = static_cast<std::int64_t>(reader.number());
  for (auto* field : {&out.node, &out.session, &out.owner, &out.id, &out.action, &out.resource, &out.stage})
    *field = reader.text();
  const auto outcome = outcome_named(reader.text());
  for (auto* field : {&out.detail, &out.profile, &out.previous}) *field = reader.text();
  if (!reader.complete() || out.previous.size() != 32) return bad_frame("its fields do not add up");
  if (!outcome) return bad_frame("its outcome is none");
  out.outcome = *outcome;
  return out;
}

namespace {

/// An anchor's fields, and the key that it names.
Expected<std::pair<AuditAnchor, std::string>> anchor_fields(const AuditFrame& frame) {
  FieldReader reader(frame.payload);
  AuditAnchor out;
  out.sequence = frame.sequence;
  out.time = static_cast<std::int64_t>(reader.number());
  std::string key;
  for (auto* field : {&out.node, &out.log, &out.head, &key}) *field = reader.text();
  if (!reader.complete() || out.log.size() != 32 || out.head.size() != 32 || key.size() != base::public_key_bytes)
    return bad_frame("its fields do not add up");
  return std::pair(out, key);
}

}  // namespace

Expected<AuditAnchor> decode_anchor(const AuditFrame& frame) {
  auto fields = anchor_fields(frame);
  if (!fields) return fields.error();
  return fields->first;
}

bool signed_by(const AuditFrame& frame, std::string_view public_key, bool anchor) {
  const auto head = frame_head(anchor ? anchor_magic : record_magic, frame.payload.size(), frame.sequence);
  return base::verify_signature(public_key, signed_text(anchor ? anchor_domain : record_domain, head, frame.payload),
                                frame.signature);
}

std::string key_statement(std::string_view public_key) { return "key " + base::to_hex(public_key); }

std::vector<AuditRecord> read_audit(std::string_view log) {
  std::vector<AuditRecord> out;
  while (!log.empty()) {
    const auto piece = read_frame(log);
    if (piece.kind != AuditPiece::Kind::frame) break;
    auto record = decode_record(piece.frame);
    if (!record) break;
    out.push_back(std::move(*record));
    log.remove_prefix(piece.frame.size);
  }
  return out;
}

const char* flaw_name(AuditReport::Flaw flaw) {
  using Flaw = AuditReport::Flaw;
  switch (flaw) {
    case Flaw::none: return "none";
    case Flaw::altered: return "altered";
    case Flaw::reordered: return "reordered";
    case Flaw::removed: return "removed";
    case Flaw::truncated: return "truncated";
    case Flaw::wrong_key: return "wrong-key";
    case Flaw::torn: return "torn";
  }
  return "?";
}

namespace {

using Flaw = AuditReport::Flaw;

struct Sighted {
  std::uint64_t sequence;
  std::string hash;
};

class AuditVerifier {
 public:
  AuditVerifier(std::string_view log, const AuditExpectation& expectation) : log_(log), expectation_(expectation) {}

  AuditReport run() {
    if (log_.empty()) {
      found(Flaw::truncated, "the log is empty; it begins with a record that names its key");
      return report_;
    }
    auto rest = log_;
    while (!rest.empty() && report_.flaw == Flaw::none) {
      const auto piece = read_frame(rest);
      if (piece.kind == AuditPiece::Kind::garbage)
        found(Flaw::altered, "it is no record: " + piece.why);
      else if (piece.kind == AuditPiece::Kind::torn)
        found(Flaw::torn,
              std::to_string(rest.size()) + " bytes at the end are " + piece.why + ", as a crash leaves them");
      else if (check(piece.frame, rest.substr(piece.frame.size)))
        rest.remove_prefix(piece.frame.size);
    }
    if (report_.intact()) check_anchors();
    return report_;
  }

 private:
  bool found(Flaw flaw, std::string why) {
    report_.flaw = flaw;
    report_.record = report_.good;
    report_.why = std::move(why);
    return false;
  }

  bool check(const AuditFrame& frame, std::string_view after) {
    const auto record = decode_record(frame);
    if (!record) return found(Flaw::altered, record.error().message);
    if (seen_.empty() && !take_key(frame, *record)) return false;
    if (!signed_by(frame, report_.key)) return found(Flaw::altered, "its signature is not that of its content");
    const auto expected = report_.good;
    if (record->sequence != expected) return misplaced(record->sequence, expected, after);
    if (record->previous != (seen_.empty() ? std::string(32, '\0') : seen_.back().hash))
      return found(Flaw::altered, "it was written after another record than the one before it");
    seen_.push_back({record->sequence, frame.hash});
    ++report_.good;
    report_.good_bytes += frame.size;
    report_.head = frame.hash;
    return true;
  }

  bool take_key(const AuditFrame& frame, const AuditRecord& record) {
    if (record.sequence == 0 && record.stage == "begin" && record.detail.starts_with("key "))
      report_.key = base::from_hex(std::string_view(record.detail).substr(4));
    report_.node = record.node;
    report_.first = frame.hash;
    if (expectation_.key) {
      const bool other = !report_.key.empty() && report_.key != *expectation_.key;
      const auto own = report_.key;
      report_.key = *expectation_.key;
      if (other && signed_by(frame, own))
        return found(Flaw::wrong_key,
                     "it is signed by the key " + base::to_hex(own) + ", not by " + base::to_hex(*expectation_.key));
    }
    if (report_.key.size() != base::public_key_bytes)
      return found(record.sequence == 0 ? Flaw::altered : Flaw::removed,
                   "the log does not begin with the record that names its key");
    return true;
  }

  /// The content is genuine; its place is not.
  bool misplaced(std::uint64_t sequence, std::uint64_t expected, std::string_view after) {
    const auto here =
        "it is record " + std::to_string(sequence) + ", where record " + std::to_string(expected) + " should be";
    if (sequence < expected) return found(Flaw::reordered, here);
    while (!after.empty()) {
      const auto piece = read_frame(after);
      if (piece.kind != AuditPiece::Kind::frame) break;
      if (piece.frame.sequence == expected) return found(Flaw::reordered, here + "; that one comes later");
      after.remove_prefix(piece.frame.size);
    }
    return found(Flaw::removed, here + "; that one is not in the log");
  }

  void check_anchors() {
    std::string_view rest = expectation_.anchors;
    std::optional<std::string> key = expectation_.anchor_key;
    for (std::uint64_t number = 0; !rest.empty(); ++number) {
      const auto piece = read_frame(rest, true);
      const auto name = "anchor " + std::to_string(number);
      if (piece.kind == AuditPiece::Kind::torn) break;
      if (piece.kind == AuditPiece::Kind::garbage) return bad_anchor(Flaw::altered, 0, name + ": " + piece.why);
      const auto fields = anchor_fields(piece.frame);
      if (!fields) return bad_anchor(Flaw::altered, 0, name + ": " + fields.error().message);
      const auto& anchor = fields->first;
      if (!key) key = fields->second;
      if (!signed_by(piece.frame, *key, true))
        return bad_anchor(Flaw::wrong_key, anchor.sequence, name + " is not signed by " + base::to_hex(*key));
      if (anchor.log != report_.first)
        return bad_anchor(Flaw::altered, 0, name + " is of another log, or this one was begun anew");
      if (anchor.sequence >= seen_.size())
        return bad_anchor(
            Flaw::truncated, seen_.size(),
            "the log ends before record " + std::to_string(anchor.sequence) + ", which " + name + " has seen");
      if (seen_[anchor.sequence].hash != anchor.head)
        return bad_anchor(Flaw::altered, anchor.sequence, "it is not the record that " + name + " has seen");
      ++report_.anchors;
      report_.anchored = std::max(report_.anchored, anchor.sequence + 1);
      rest.remove_prefix(piece.frame.size);
    }
  }

  void bad_anchor(Flaw flaw, std::uint64_t record, std::string why) {
    report_.flaw = flaw;
    report_.record = record;
    report_.why = std::move(why);
  }

  std::string_view log_;
  const AuditExpectation& expectation_;
  AuditReport report_;
  std::vector<Sighted> seen_;
};

}  // namespace

AuditReport verify_audit(std::string_view log, const AuditExpectation& expectation) {
  return AuditVerifier(log, expectation).run();
}

}  // namespace leafcutter::protocols
