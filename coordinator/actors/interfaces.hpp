// The actors inside a coordinator and what they tell each other. None of it crosses a wire: payloads are shared and
// never changed. What nodes and commands know of the coordinator is in actors/messages.hpp.
//
//   coordinator ── nodes' words ──► dispatcher ── executions, losses ──► campaign ── traces ──► judges
//              ── submit, watch ──► campaign   ── orders ──► dispatcher           ── cases ──► minimizer
#pragma once

#include <caf/actor_addr.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>
#include <memory>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "coordinator/actors/intake.hpp"
#include "coordinator/campaign/case_file.hpp"
#include "coordinator/ledger/ledger.hpp"

namespace leafcutter::coordinator {

/// Of an execution, its node's report and its trace.
struct Execution {
  std::uint64_t run = 0;   ///< Enlistment::run
  bool duplicate = false;  ///< the order is resolved already: only compared
  actors::LeafOrder order;
  actors::LeafReport report;
  std::shared_ptr<const FinishedTrace> trace;
};

/// An order that was lost with its nodes as often as it may be.
struct Loss {
  std::uint64_t run = 0;
  actors::LeafOrder order;
};

struct JudgeTask {
  std::shared_ptr<const scenarios::Scenario> scenario;
  std::shared_ptr<const Execution> execution;
};

struct Judged {
  std::shared_ptr<const Execution> execution;
  Result result;
};

struct Submission {
  std::shared_ptr<const scenarios::Scenario> scenario;
  actors::ScenarioText text;
  std::uint64_t seed = 0;
};

struct Orders {
  std::string campaign;
  std::vector<actors::LeafOrder> orders;
  std::vector<std::string> dropped;  ///< executions ordered earlier that nobody waits for any more
};

using TracePtr = std::shared_ptr<const FinishedTrace>;
using ExecutionPtr = std::shared_ptr<const Execution>;
using LossPtr = std::shared_ptr<const Loss>;
using JudgeTaskPtr = std::shared_ptr<const JudgeTask>;
using JudgedPtr = std::shared_ptr<const Judged>;
using SubmissionPtr = std::shared_ptr<const Submission>;
using OrdersPtr = std::shared_ptr<const Orders>;
using CasesPtr = std::shared_ptr<const Cases>;
using ResultPtr = std::shared_ptr<const Result>;
using ResultsPtr = std::shared_ptr<const std::vector<Result>>;
using InquiredPtr = std::shared_ptr<const Inquired>;
struct Enlistment;
using EnlistmentPtr = std::shared_ptr<const Enlistment>;

}  // namespace leafcutter::coordinator

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::TracePtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::ExecutionPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::LossPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::JudgeTaskPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::JudgedPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::SubmissionPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::OrdersPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::CasesPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::ResultPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::ResultsPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::InquiredPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leafcutter::coordinator::EnlistmentPtr)

namespace leafcutter::coordinator {

using judge_atom = caf::atom_constant<caf::atom("judge")>;
using begin_atom = caf::atom_constant<caf::atom("begin")>;
using case_atom = caf::atom_constant<caf::atom("case")>;
using result_atom = caf::atom_constant<caf::atom("result")>;
using lost_atom = caf::atom_constant<caf::atom("lost")>;
using gone_atom = caf::atom_constant<caf::atom("gone")>;
using trace_atom = caf::atom_constant<caf::atom("trace")>;
using enlist_atom = caf::atom_constant<caf::atom("enlist")>;
using order_atom = caf::atom_constant<caf::atom("order")>;
using close_atom = caf::atom_constant<caf::atom("close")>;
using slots_atom = caf::atom_constant<caf::atom("slots")>;
using tick_atom = caf::atom_constant<caf::atom("tick")>;
using budget_atom = caf::atom_constant<caf::atom("budget")>;

/// The JUDGE actor interface; several of them share the work.
using judge_actor = caf::typed_actor<
    // Judges one execution.
    caf::replies_to<judge_atom, JudgeTaskPtr>::with<JudgedPtr>>;

/// The MINIMIZER actor interface; every campaign has its own.
using minimizer_actor = caf::typed_actor<
    // Forgets its cases and begins anew, knowing these results of before.
    caf::reacts_to<begin_atom, ResultsPtr>,
    // Inquires into failing groups; the answer is what to run for them, and what is known already.
    caf::replies_to<case_atom, CasesPtr>::with<InquiredPtr>,
    // Takes the result of an execution that it ordered; the answer is what to run next and what was concluded.
    caf::replies_to<result_atom, ResultPtr>::with<InquiredPtr>>;

/// The CAMPAIGN actor interface.
using campaign_actor = caf::typed_actor<
    // Begins the campaign, or takes it up where the ledger left it; one that is under way goes on. The answer is its
    // name.
    caf::replies_to<actors::submit_atom, SubmissionPtr>::with<std::string>,
    // How it stands.
    caf::replies_to<actors::watch_atom>::with<actors::Progress>,
    // Stops; its state is kept.
    caf::reacts_to<actors::cancel_atom>,
    // An execution that it ordered is over.
    caf::reacts_to<actors::done_atom, ExecutionPtr>,
    // An execution that it ordered will not be tried again.
    caf::reacts_to<lost_atom, LossPtr>>;

/// A campaign that will have orders.
struct Enlistment {
  std::string campaign;
  std::uint64_t run = 0;  ///< tells a campaign's submission from its earlier ones
  actors::ScenarioText text;
  campaign_actor handle;  ///< is told what becomes of its orders
};

/// The DISPATCHER actor interface.
using dispatcher_actor = caf::typed_actor<
    // Opens a session for a node that the coordinator admits.
    caf::replies_to<actors::hello_atom, actors::NodeInfo, actors::node_actor>::with<actors::Welcome>,
    // A node has this many free slots. (session, free slots)
    caf::reacts_to<actors::want_atom, std::uint64_t, std::uint32_t>,
    // A node is alive and still works on its leases. (session)
    caf::reacts_to<actors::renew_atom, std::uint64_t>,
    // A node's word that an execution is over.
    caf::reacts_to<actors::done_atom, actors::LeafReport>,
    // The node's actor has ended, or its connection has.
    caf::reacts_to<gone_atom, caf::actor_addr>,
    // An execution's events are all there.
    caf::reacts_to<trace_atom, TracePtr>,
    // Takes a campaign on, in place of its own earlier submission.
    caf::reacts_to<enlist_atom, EnlistmentPtr>,
    // Has executions run, and others not.
    caf::reacts_to<order_atom, OrdersPtr>,
    // Stops what is run for a campaign and forgets it. (campaign)
    caf::reacts_to<close_atom, std::string>,
    // The slots of all nodes that are alive.
    caf::replies_to<slots_atom>::with<std::uint32_t>>;

}  // namespace leafcutter::coordinator
