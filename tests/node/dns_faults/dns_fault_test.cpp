// What a DNS fault may say, and what is said of what it may not.
#include "node/dns_faults/dns_fault.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

namespace leafcutter::node::dns_faults {
namespace {

using namespace std::chrono_literals;
using proxy::Transport;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::string complaint(const DnsFault& fault, Transport transport = Transport::udp) {
  const auto status = checked(fault, transport);
  if (status) return "";
  EXPECT_EQ(status.error().code, base::ErrorCode::bad_input);
  return status.error().message;
}

DnsFault good_fault_of(DnsCase dns_case) {
  DnsFault fault;
  fault.dns_case = dns_case;
  if (dns_case == DnsCase::delay) fault.delay = proxy::FixedTime{1ms};
  if (dns_case == DnsCase::wrong_answers) fault.addresses = {"192.0.2.1"};
  return fault;
}

TEST(DnsFault, EveryCaseHasANameAndIsGood) {
  for (const auto dns_case : every_dns_case) {
    EXPECT_THAT(complaint(good_fault_of(dns_case)), IsEmpty()) << name_of(dns_case);
    const auto again = dns_case_of(name_of(dns_case));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, dns_case);
  }
  const auto near = dns_case_of("nxdomain");
  ASSERT_FALSE(near);
  EXPECT_THAT(near.error().message, AllOf(HasSubstr("`nxdomain`"), HasSubstr("did you mean `nx-domain`?")));
  EXPECT_THAT(dns_case_of("?").error().message, HasSubstr("serv-fail"));
}

TEST(DnsFault, SaysWhichFieldIsWrongAndWhatWouldDo) {
  DnsFault fault;
  EXPECT_THAT(complaint(fault), AllOf(HasSubstr("delay: none is given"), HasSubstr("would do")));
  fault = good_fault_of(DnsCase::refused);
  fault.name = "re*dis";
  EXPECT_THAT(complaint(fault), HasSubstr("name: `re*dis`"));
  fault = good_fault_of(DnsCase::refused);
  fault.types = {"AAAAA"};
  EXPECT_THAT(complaint(fault), AllOf(HasSubstr("types: "), HasSubstr("AAAA")));
  for (const double bad : {-0.1, 1.1, std::nan("")}) {
    fault = good_fault_of(DnsCase::refused);
    fault.probability = bad;
    EXPECT_THAT(complaint(fault), HasSubstr("probability: "));
  }
  fault = good_fault_of(DnsCase::refused);
  fault.occurrences.first = 0;
  EXPECT_THAT(complaint(fault), HasSubstr("occurrences: "));
  fault = good_fault_of(DnsCase::refused);
  fault.delay = proxy::UniformTime{2ms, 1ms};
  EXPECT_THAT(complaint(fault), HasSubstr("delay: "));
  fault.delay.reset();
  fault.cap = 1ms;
  EXPECT_THAT(complaint(fault), HasSubstr("cap: "));
  fault = good_fault_of(DnsCase::ttl);
  fault.ttl = 0x80000000;
  EXPECT_THAT(complaint(fault), HasSubstr("ttl: "));
}

TEST(DnsFault, SaysWhatDoesNotGoTogether) {
  EXPECT_THAT(complaint(good_fault_of(DnsCase::truncated), Transport::tcp), HasSubstr("put it on the UDP link"));
  auto fault = good_fault_of(DnsCase::wrong_answers);
  fault.addresses = {"192.0.2.1", "nowhere"};
  EXPECT_THAT(complaint(fault), HasSubstr("addresses[1]: `nowhere`"));
  fault.addresses.clear();
  EXPECT_THAT(complaint(fault), HasSubstr("addresses: none is given"));
  fault = good_fault_of(DnsCase::refused);
  fault.addresses = {"192.0.2.1"};
  EXPECT_THAT(complaint(fault), HasSubstr("addresses: only wrong-answers"));
  fault = good_fault_of(DnsCase::refused);
  fault.on_reply = true;
  EXPECT_THAT(complaint(fault), HasSubstr("on_reply: refused"));
  fault = good_fault_of(DnsCase::nx_domain);
  fault.name = "*.internal";
  fault.zone = "example";
  EXPECT_THAT(complaint(fault), HasSubstr("zone: `example` does not hold `*.internal`"));
  fault.zone = "internal";
  EXPECT_THAT(complaint(fault), IsEmpty());
}

TEST(DnsFault, IsNamedByItsCaseUnlessNamed) {
  EXPECT_EQ(dns_fault(good_fault_of(DnsCase::serv_fail), Transport::udp)->id, "dns-serv-fail");
  EXPECT_EQ(dns_fault(good_fault_of(DnsCase::serv_fail), Transport::tcp, "x")->id, "x");
}

}  // namespace
}  // namespace leafcutter::node::dns_faults
