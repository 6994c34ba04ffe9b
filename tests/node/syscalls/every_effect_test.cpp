// Every kind of fault of system calls, in every family that it says it strikes: it fires there, and its twin, which
// waits for a call that never comes, does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "harness.hpp"
#include "node/syscalls/durable_image.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node::tests {
namespace {

struct EveryEffect {
  std::string kind, family;
};
void PrintTo(const EveryEffect& effect, std::ostream* out) { *out << effect.kind << " at " << effect.family; }

std::vector<EveryEffect> every_effect() {
  std::vector<EveryEffect> all;
  for (const auto& kind : scenarios::fault_kinds())
    if (kind.mechanism == scenarios::Mechanism::syscall)
      for (const auto& family : kind.operations) all.push_back({kind.name, family});
  return all;
}

/// A call of the family, whose object is a file of ten bytes, a TCP socket, or nothing.
std::vector<std::string> program_that_calls(const std::string& family) {
  static const std::map<std::string, std::string> steps = {
      {"write", "write,a,more"},       {"read", "readn,a,9"},  {"open", "openat,.,new"},  {"fsync", "fsync,a"},
      {"rename", "rename,a,b"},        {"unlink", "unlink,a"}, {"mkdir", "mkdir,d,0755"}, {"truncate", "truncate,a,20"},
      {"allocate", "fallocate,a,100"}, {"sleep", "sleep,1"},   {"random", "random"},      {"clock", "clock"}};
  if (const auto step = steps.find(family); step != steps.end()) return {program("steps"), step->second};
  return {program("traffic"), "tcp", family == "receive" ? "receive" : "send", family == "receive" ? "recv" : "send",
          "0123456789"};
}

Value smallest_parameters(const scenarios::FaultKind& kind) {
  using Type = scenarios::FaultParameter::Type;
  auto params = Value::object();
  for (const auto& parameter : kind.parameters) {
    if (!parameter.required) continue;
    if (parameter.type == Type::duration) params[parameter.name] = "2ms";
    if (parameter.type == Type::error_name) params[parameter.name] = "EDQUOT";
    if (parameter.type == Type::count)
      params[parameter.name] = parameter.name == "bytes-per-second" ? 1'000'000 : parameter.least == 0 ? 0 : 1;
  }
  return params;
}

class EachEffect : public testing::TestWithParam<EveryEffect> {
 protected:
  Outcome at_call(std::uint32_t nth) const {
    const ScratchFolder folder;
    std::filesystem::create_directory(folder / "data");
    std::ofstream(folder / "data/a") << "0123456789";
    auto image = DurableImage::create(folder / "data", folder / "image");
    EXPECT_TRUE(image);
    const auto* kind = scenarios::fault_kind(GetParam().kind);
    scenarios::Aim aim;
    aim.occurrences = {scenarios::Occurrences::Which::nth, nth};
    std::vector<std::string> families = kind->watches;
    if (std::find(families.begin(), families.end(), GetParam().family) == families.end())
      families.push_back(GetParam().family);
    return run(program_that_calls(GetParam().family),
               {.families = families,
                .data_folder = folder / "data",
                .faults = {rule(kind->name, GetParam().family, smallest_parameters(*kind), aim)},
                .working_folder = folder / "data",
                .image = kind->needs_image ? std::make_shared<DurableImage>(std::move(*image)) : nullptr});
  }
};

TEST_P(EachEffect, FiresAtItsCall) {
  const auto outcome = at_call(1);
  EXPECT_EQ(outcome.failure, "");
  const auto fired = outcome.fired();
  std::string all;
  for (const auto& event : outcome.events) all += event.kind + " " + event.attrs.dump() + "\n";
  ASSERT_FALSE(fired.is_null()) << all;
  EXPECT_EQ(fired["kind"], GetParam().kind);
  EXPECT_TRUE(fired["evidence"].contains("call"));
  const auto* kind = scenarios::fault_kind(GetParam().kind);
  EXPECT_EQ(outcome.crashes, kind->kills ? 1 : 0);
  EXPECT_EQ(outcome.power_losses, kind->name.starts_with("power-loss") ? 1 : 0);
  EXPECT_FALSE(outcome.undone().is_null());
}

TEST_P(EachEffect, HasATwinThatDoesNot) {
  const auto outcome = at_call(1000);
  EXPECT_TRUE(outcome.exited_well()) << outcome.status << outcome.failure;
  EXPECT_THAT(outcome.output, testing::Not(testing::HasSubstr(" -1 ")));
  EXPECT_TRUE(outcome.of_kind("fault.fired").empty());
  EXPECT_TRUE(outcome.of_kind("fault.undone").empty());
  EXPECT_EQ(outcome.crashes, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, EachEffect, testing::ValuesIn(every_effect()), [](const auto& effect) {
  auto name = effect.param.kind + "_at_" + effect.param.family;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

class Unconnected : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(Unconnected, OnlyFromThePeerThatIsMeant) {
  const ScratchFolder folder;
  const auto towards = [&](const std::string& peer) {
    scenarios::Aim aim;
    aim.peer = peer;
    return run({program("traffic"), "tcp", "send", "send", "0123456789"},
               {.families = {"connect"},
                .data_folder = folder.path(),
                .faults = {rule("errno", "connect", {{"error", GetParam().first}, {"late", "20ms"}}, aim)},
                .working_folder = folder.path()});
  };
  const auto struck = towards("127.0.0.1:*");
  EXPECT_EQ(WEXITSTATUS(struck.status), 3) << "it has no connection";
  EXPECT_EQ(struck.fired()["evidence"]["errno"], GetParam().second);
  EXPECT_GE(struck.fired()["evidence"]["late_ms"].get<int>(), 20);
  const auto spared = towards("127.0.0.2:*");
  EXPECT_EQ(spared.output, "send 10 0 0123456789\n");
  EXPECT_TRUE(spared.of_kind("fault.fired").empty());
}

INSTANTIATE_TEST_SUITE_P(By, Unconnected,
                         testing::Values(std::pair{"ECONNREFUSED", 111}, std::pair{"ETIMEDOUT", 110},
                                         std::pair{"ENETUNREACH", 101}, std::pair{"EHOSTUNREACH", 113}),
                         [](const auto& named) { return std::string(named.param.first); });

TEST(Accepting, FailsForTheListenerThatIsMeant) {
  const ScratchFolder folder;
  const auto at_port = [&](const std::string& peer) {
    scenarios::Aim aim;
    aim.peer = peer;
    return run({program("traffic"), "tcp", "send", "send", "0123456789"},
               {.families = {"accept"},
                .data_folder = folder.path(),
                .faults = {rule("errno", "accept", {{"error", "EMFILE"}}, aim)},
                .working_folder = folder.path()});
  };
  EXPECT_EQ(WEXITSTATUS(at_port("127.0.0.1:*").status), 3) << "there is no second end";
  EXPECT_EQ(at_port("127.0.0.1:1").output, "send 10 0 0123456789\n");
}

}  // namespace
}  // namespace leafcutter::node::tests
