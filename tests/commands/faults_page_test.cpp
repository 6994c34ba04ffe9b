#include <gtest/gtest.h>

#include "scenarios/fault_kinds.hpp"
#include "tests/support/kept.hpp"

namespace leafcutter::scenarios {
namespace {

TEST(FaultsPage, IsUpToDate) { tests::expect_page("faults.md", faults_page()); }

TEST(FaultKinds, AreDefinedWhole) {
  for (const auto& kind : fault_kinds()) {
    EXPECT_EQ(fault_kind(kind.name), &kind);
    EXPECT_FALSE(kind.about.empty() || kind.operations.empty() || kind.evidence.empty() || kind.undo.empty())
        << kind.name;
    if (kind.mechanism != Mechanism::syscall) continue;
    for (const auto& operation : kind.operations) {
      EXPECT_NE(syscall_family(operation), nullptr) << kind.name << " " << operation;
    }
  }
}

TEST(FaultParams, AreCheckedWithTheNearestName) {
  const auto& fault = *fault_kind("errno");
  EXPECT_TRUE(check_params(fault, {{"error", "EIO"}}).ok());
  EXPECT_EQ(check_params(fault, {{"error", "ENOSPACE"}}).error().message,
            "parameter \"error\" of fault \"errno\": unknown error \"ENOSPACE\"; did you mean \"ENOSPC\"?");
  EXPECT_EQ(check_params(fault, {{"eror", "EIO"}}).error().message,
            "fault \"errno\" has no parameter \"eror\"; did you mean \"error\"?");
  EXPECT_EQ(check_params(fault, Value::object()).error().message,
            "fault \"errno\" needs \"error\": the error, by name: EIO, ENOSPC, ...");
  EXPECT_FALSE(check_params(*fault_kind("delay"), {{"for", "0s"}}).ok());
  EXPECT_FALSE(check_params(*fault_kind("delay"), {{"for", 5}}).ok());
  EXPECT_FALSE(check_params(*fault_kind("refuse"), {{"for", "5s"}}).ok());
}

TEST(ErrorNumbers, AreLinuxsOwn) {
  EXPECT_EQ(error_number("EIO"), 5);
  EXPECT_EQ(error_number("ENOSPC"), 28);
  EXPECT_EQ(error_number("EDQUOT"), 122);
  EXPECT_EQ(error_number("EWOULDBLOCK"), 11);
  EXPECT_EQ(error_name(11), "EAGAIN");
  EXPECT_EQ(error_number("EVERYTHING"), 0);
}

}  // namespace
}  // namespace leafcutter::scenarios
