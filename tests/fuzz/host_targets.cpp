#include "host_targets.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "base/signature.hpp"
#include "node/host/profile.hpp"
#include "protocols/audit.hpp"

namespace fuzz {
namespace {

using namespace leafcutter;

void host_promise(bool kept, const char* what) {
  if (!kept) throw std::logic_error(what);
}

/// The same key in every run, so that an input that fails can be given again.
const base::SigningKey& fuzz_key() {
  static const auto key = *base::SigningKey::from_pem(
      "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n-----END PRIVATE "
      "KEY-----\n");
  return key;
}

std::vector<std::string> audit_frames() {
  std::vector<std::string> out;
  std::string previous(32, '\0');
  for (std::uint64_t i = 0; i < 3; ++i) {
    protocols::AuditRecord record{
        .sequence = i, .node = "n", .stage = "outcome", .outcome = protocols::Outcome::failure};
    if (i == 0) record = {.node = "n", .stage = "begin", .detail = protocols::key_statement(fuzz_key().public_key())};
    record.previous = previous;
    out.push_back(protocols::seal_record(record, fuzz_key()));
    previous = protocols::read_frame(out.back()).frame.hash;
  }
  return out;
}

}  // namespace

std::vector<std::string> audit_corpus() {
  const auto frames = audit_frames();
  return {frames[0], frames[0] + frames[1], frames[0] + frames[1] + frames[2]};
}

/// Whatever the bytes are, what verifies under the key is a beginning of what was signed with it.
int verify_audit_log(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const auto whole = audit_corpus().back();
  const auto report = protocols::verify_audit(bytes, {fuzz_key().public_key(), "", {}});
  host_promise(report.good_bytes <= size && bytes.substr(0, report.good_bytes) == whole.substr(0, report.good_bytes),
               "a record verifies that nobody signed");
  host_promise(report.flaw == protocols::AuditReport::Flaw::none ? report.good_bytes == size : !report.why.empty(),
               "a flaw without a reason, or bytes that nobody looked at");
  protocols::read_audit(bytes);
  const auto anchored = protocols::verify_audit(whole, {fuzz_key().public_key(), std::string(bytes), {}});
  host_promise(anchored.anchors == 0, "an anchor counts that nobody signed");
  return report.intact() && report.good > 0 ? 0 : 1;
}

std::vector<std::string> profile_corpus() {
  std::ifstream file(std::filesystem::path(LEAFCUTTER_SOURCE_DIR) / "tests/node/host/data/harness.yaml");
  return {std::string(std::istreambuf_iterator<char>(file), {}), "profile: 1\nname: x\n"};
}

int read_host_profile(const std::uint8_t* data, std::size_t size) {
  using namespace node::host;
  const auto loaded = load_profile_text({reinterpret_cast<const char*>(data), size}, "p.yaml");
  host_promise(loaded.profile.has_value() == loaded.errors.empty(),
               "a profile with mistakes, or none without a mistake");
  for (const auto& error : loaded.errors)
    host_promise(error.code == base::ErrorCode::bad_input && error.where.file == "p.yaml" && !error.message.empty(),
                 "a mistake that does not say what and where");
  if (!loaded.profile) return 1;
  for (const auto& entry : loaded.profile->commands) {
    const auto fixed = entry.fixed_vector();
    if (!fixed) continue;
    auto argv = *fixed;
    host_promise(decide(*loaded.profile, {"command", {}, argv, {}}).allowed,
                 "a command that is its own text is denied");
    argv.emplace_back();
    const auto more = decide(*loaded.profile, {"command", {}, argv, {}});
    host_promise(!more.allowed || more.command != entry.name, "one argument more is allowed");
  }
  for (const auto& action : action_names())
    host_promise(
        action == "command" || !decide(*loaded.profile, {action, {{"x", "y"}}, {}, std::chrono::seconds(1)}).allowed,
        "an unknown parameter is allowed");
  return 0;
}

}  // namespace fuzz
