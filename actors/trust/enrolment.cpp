#include "actors/trust/enrolment.hpp"

namespace leafcutter::actors {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;
using base::Status;

constexpr std::int64_t longest_overlap = 7 * 24 * 3600;

struct Certified {
  std::string certificate, authority, campaign;
};

/// A certificate for a key that is to be on the roll. Nothing is changed yet.
Expected<Certified> certify(const KeyFolder& folder, const Identity& identity, EVP_PKEY& key, WallTime now) {
  const auto authority = folder.authority_certificate();
  const auto authority_key = folder.authority_key();
  const auto campaign = folder.campaign_public_pem();
  if (!authority) return authority.error();
  if (!authority_key) return authority_key.error();
  if (!campaign) return campaign.error();
  const auto certificate = issue(identity, key, **authority, **authority_key, valid_for(now, peer_validity));
  if (!certificate) return certificate.error();
  const auto text = pem(**certificate), authority_text = pem(**authority);
  if (!text) return text.error();
  if (!authority_text) return authority_text.error();
  return Certified{*text, *authority_text, *campaign};
}

/// The identity that a ticket is for, which is used up. First and by itself: whatever fails later, it was used.
Expected<Identity> use_ticket(const KeyFolder& folder, const std::string& secret, std::int64_t now) {
  const auto hash = JoinToken{{}, {}, secret}.hash();
  Expected<Identity> identity = Error{ErrorCode::internal, "no roll"};
  const auto changed = folder.change_roll([&](Roll& roll) -> Status {
    identity = redeem(roll, hash, now);
    return identity ? base::ok() : Status(identity.error());
  });
  return changed ? identity : Expected<Identity>(changed.error());
}

}  // namespace

EnrolmentAnswer answer_enrolment(const KeyFolder& folder, const EnrolmentRequest& request, const Peer* shown,
                                 WallTime now, std::string& sentence) {
  const auto refuse = [&](const std::string& whom, const Error& why) {
    sentence = whom + " was not enrolled: " + why.message;
    // What is wrong with our own files is our own business.
    const bool ours = why.code == ErrorCode::io || why.code == ErrorCode::internal;
    return EnrolmentAnswer{
        ours ? "the authority cannot enrol anybody now; its own log says why" : why.message, {}, {}, {}};
  };
  const auto key = requested_key(request.request);
  if (!key) return refuse("somebody", key.error());
  const bool joins = !request.secret.empty();
  if (!joins && shown == nullptr)
    return refuse("somebody", Error{ErrorCode::bad_input, "neither a join token nor a key that could be replaced"});
  const auto seconds = seconds_of(now);
  const auto identity = joins ? use_ticket(folder, request.secret, seconds) : Expected<Identity>(shown->identity);
  if (!identity) return refuse("somebody", identity.error());
  const auto certified = certify(folder, *identity, **key, now);
  if (!certified) return refuse(describe(*identity), certified.error());
  const auto print = fingerprint(**key);
  const auto expires = seconds_of(now + peer_validity);
  const auto overlap = std::min(request.overlap, longest_overlap);
  const auto changed = folder.change_roll([&](Roll& roll) {
    return joins ? enrol(roll, *identity, print, seconds, expires)
                 : rotate(roll, shown->key, print, seconds, expires, overlap);
  });
  if (!changed) return refuse(describe(*identity), changed.error());
  sentence =
      describe(*identity) + (joins ? " is enrolled with the key " : " has replaced its key by ") + print.substr(0, 16);
  return {{}, certified->certificate, certified->authority, certified->campaign};
}

base::Status rotate_own(const KeyFolder& folder, std::chrono::seconds overlap, WallTime now) {
  const auto identity = folder.identity();
  if (!identity) return identity.error();
  const auto material = folder.material();
  if (!material) return material.error();
  const auto present = certificate_from_pem(material->certificate);
  if (!present) return present.error();
  const auto key = new_key();
  if (!key) return key.error();
  const auto certified = certify(folder, *identity, **key, now);
  if (!certified) return certified.error();
  const auto text = private_pem(**key);
  if (!text) return text.error();
  auto changed = folder.change_roll([&](Roll& roll) {
    return rotate(roll, key_fingerprint(**present), fingerprint(**key), seconds_of(now),
                  seconds_of(now + peer_validity), std::min<std::int64_t>(overlap.count(), longest_overlap));
  });
  return changed ? folder.replace_identity(certified->certificate, *text) : changed;
}

}  // namespace leafcutter::actors
