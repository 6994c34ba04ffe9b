// A service's lookups: each is a visit of its site, and the plan's faults strike the visits that they name.
#include "node/resolver/lookups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocols/dns_reply.hpp"
#include "scenarios/event_kinds.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node::resolver {
namespace {

using namespace protocols;
using proxy::Transport;
using testing::IsEmpty;
using testing::SizeIs;
namespace events = scenarios::events;

scenarios::Fault struck(const std::string& kind, Value params = Value::object(),
                        const std::string& resource = "broker A", std::uint32_t occurrence = 1) {
  return {kind, {"shop -> dns", "query", resource}, occurrence, std::move(params), {}};
}

std::string query(std::uint16_t id, const std::string& name = "broker", std::uint16_t type = dns_type::a) {
  DnsMessage message;
  message.id = id;
  message.recursion_desired = true;
  message.questions = {{*DnsName::from_text(name), type, dns_class::in}};
  message.additional = {*to_record(DnsEdns{})};
  return *encode_dns(message);
}

class LookupsTest : public testing::Test {
 protected:
  void plan(std::vector<scenarios::Fault> faults) {
    scenarios::Plan made;
    made.faults = std::move(faults);
    book_.emplace(made, recorder_);
    book_->arm();
    lookups_.emplace(zone_, *book_, recorder_, "shop");
  }
  DnsMessage ask(const std::string& message, Transport transport = Transport::udp) {
    last_ = lookups_->ask(message, transport);
    if (last_.ends) lookups_->over(*last_.ends);
    return last_.bytes ? *parse_dns(*last_.bytes) : DnsMessage{};
  }
  std::vector<Event> of(const std::string& kind) const {
    std::vector<Event> found;
    for (const auto& event : events_)
      if (event.kind == kind) found.push_back(event);
    return found;
  }
  Value visits() {
    book_->finish();
    return of(events::sites).back().attrs["sites"];
  }

  std::vector<Event> events_;
  Recorder recorder_{[] { return std::chrono::nanoseconds(0); },
                     [this](Event event) { events_.push_back(std::move(event)); }};
  Zone zone_{{{"broker", {"10.77.0.1"}}, {"shop", {"10.77.0.2"}}}};
  std::optional<SiteBook> book_;
  std::optional<Lookups> lookups_;
  Answer last_;
};

TEST_F(LookupsTest, EveryKindIsACase) {
  for (const auto& kind : scenarios::dns_fault_kinds()) {
    auto fault = struck(kind.name);
    if (kind.name == "dns-delay") fault.params["for"] = "1s";
    const auto made = dns_fault_of(fault);
    ASSERT_TRUE(made) << kind.name;
    EXPECT_TRUE(checked(*made, Transport::udp)) << kind.name;
    EXPECT_EQ("dns-" + std::string(name_of(made->dns_case)), kind.name);
  }
  EXPECT_FALSE(dns_fault_of(struck("refuse")));
}

TEST_F(LookupsTest, WithoutAFaultTheSitesAreCounted) {
  plan({});
  EXPECT_EQ(ask(query(1)).answers.size(), 1u);
  EXPECT_EQ(ask(query(2, "BROKER")).answers.size(), 1u);
  EXPECT_EQ(ask(query(3, "nobody", dns_type::aaaa)).rcode, dns_rcode::name_error);
  EXPECT_EQ(visits(),
            Value::parse(R"([["shop -> dns","query","broker A",2],["shop -> dns","query","nobody AAAA",1]])"));
}

TEST_F(LookupsTest, StrikesTheOccurrenceThatIsNamedAndNoOther) {
  plan({struck("dns-serv-fail", Value::object(), "broker A", 2)});
  EXPECT_EQ(ask(query(1)).rcode, 0);
  EXPECT_EQ(ask(query(2, "broker", dns_type::aaaa)).rcode, 0);
  EXPECT_EQ(ask(query(3, "shop")).rcode, 0);
  EXPECT_EQ(ask(query(4)).rcode, dns_rcode::server_failure);
  EXPECT_EQ(ask(query(5)).rcode, 0);
  ASSERT_THAT(of(events::fault_fired), SizeIs(1));
  const auto evidence = of(events::fault_fired)[0].attrs["evidence"];
  EXPECT_EQ(evidence, Value::parse(R"({"name":"broker","type":"A","transport":"udp","rcode":"SERVFAIL"})"));
  EXPECT_EQ(of(events::fault_fired)[0].lane, "shop -> dns");
  ASSERT_THAT(of(events::fault_undone), SizeIs(1));
}

TEST_F(LookupsTest, TheSameQuerySentAgainIsTheSameLookup) {
  plan({struck("dns-timeout")});
  for (int attempt = 0; attempt < 3; ++attempt) {
    ask(query(7));
    EXPECT_FALSE(last_.bytes);
  }
  EXPECT_EQ(ask(query(7), Transport::tcp).answers.size(), 1u) << "over TCP it is another";
  EXPECT_EQ(ask(query(8)).answers.size(), 1u);
  EXPECT_THAT(of(events::fault_fired), SizeIs(1));
  EXPECT_EQ(visits()[0][3], 3);
}

TEST_F(LookupsTest, SeveralInARow) {
  plan({struck("dns-refused", {{"times", 2}}, "broker A", 2)});
  std::vector<int> codes;
  for (std::uint16_t id = 1; id <= 4; ++id) codes.push_back(ask(query(id)).rcode);
  EXPECT_EQ(codes, (std::vector<int>{0, 5, 5, 0}));
  ASSERT_THAT(of(events::fault_undone), SizeIs(1));
  EXPECT_EQ(of(events::fault_undone)[0].attrs["strikes"], 2);
}

TEST_F(LookupsTest, TruncationSendsTheCallerToTcpAndStrikesNothingThere) {
  plan({struck("dns-truncated", {{"times", 9}})});
  EXPECT_TRUE(ask(query(1)).truncated);
  const auto answer = ask(query(1), Transport::tcp);
  EXPECT_FALSE(answer.truncated);
  EXPECT_EQ(answer.answers.size(), 1u);
  EXPECT_THAT(of(events::fault_fired), SizeIs(1));
}

TEST_F(LookupsTest, ChangesOfTheRightAnswer) {
  plan({struck("dns-ttl", {{"seconds", 3600}}), struck("dns-wrong-id", Value::object(), "broker A", 2),
        struck("dns-random-address", Value::object(), "broker A", 3),
        struck("dns-random-address", Value::object(), "broker MX", 1)});
  EXPECT_EQ(ask(query(1)).answers.at(0).ttl, 3600u);
  EXPECT_NE(ask(query(2)).id, 2);
  const auto wrong = ask(query(3));
  const auto address = to_text(DnsAddress{wrong.answers.at(0).data});
  EXPECT_TRUE(address.starts_with("198.1")) << address;
  EXPECT_EQ(of(events::fault_fired).at(2).attrs["evidence"]["address"], address);
  EXPECT_TRUE(ask(query(4, "broker", dns_type::mx)).answers.empty());
  EXPECT_THAT(of(events::fault_fired), SizeIs(3)) << "no address was asked for";
  const auto first = address;
  plan({struck("dns-random-address", Value::object(), "broker A", 1)});
  const auto again = to_text(DnsAddress{ask(query(9)).answers.at(0).data});
  plan({struck("dns-random-address", Value::object(), "broker A", 1)});
  EXPECT_EQ(again, to_text(DnsAddress{ask(query(10)).answers.at(0).data})) << "the plan's, whatever the ID";
}

TEST_F(LookupsTest, ADelayGoesWithWhatElseStrikes) {
  plan({struck("dns-delay", {{"for", "2s"}}), struck("dns-nx-domain"), struck("dns-refused")});
  EXPECT_EQ(ask(query(1)).rcode, dns_rcode::name_error) << "the first that decides does";
  EXPECT_EQ(last_.delay, std::chrono::seconds(2));
  EXPECT_THAT(of(events::fault_fired), SizeIs(2));
}

TEST_F(LookupsTest, WhatIsNoQueryIsAnsweredAsAResolverDoesAndIsNoVisit) {
  plan({struck("dns-timeout", {{"times", 9}})});
  EXPECT_EQ(ask(query(1).substr(0, 20)).rcode, dns_rcode::format_error);
  EXPECT_FALSE(lookups_->ask("x", Transport::udp).bytes);
  EXPECT_THAT(visits(), IsEmpty());
}

}  // namespace
}  // namespace leafcutter::node::resolver
