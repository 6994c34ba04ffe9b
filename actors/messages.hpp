// What crosses between coordinator and nodes: plain structs, the actor interfaces (a sentence above each handler) and
// their type ids. Bulk data never travels here: events go over ZeroMQ (protocols/stream.hpp).
#pragma once

#include <caf/atom.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/replies_to.hpp>
#include <caf/timespan.hpp>
#include <caf/type_id.hpp>
#include <caf/typed_actor.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace leafcutter::actors {

/// Changes when a message changes; a peer of another version is told so and refused.
inline constexpr std::uint32_t protocol_version = 1;

struct NodeInfo {
  std::uint32_t protocol = protocol_version;
  std::string name;
  std::uint32_t slots = 0;
  std::uint64_t incarnation = 0;          ///< differs after every start of the node
  std::vector<std::string> capabilities;  ///< seen by self-test
};

/// The coordinator's answer to a node.
struct Welcome {
  bool admitted = false;
  std::string refusal;  ///< why not
  std::uint64_t session = 0;
  std::string events_endpoint;  ///< ZeroMQ: where the node's DEALER connects
  caf::timespan renew_every{};
};

/// One execution of one leaf.
struct LeafOrder {
  std::string execution;  ///< "<address>#<attempt>", unique
  std::string address;
  std::string purpose;     ///< explore, confirm, control, minimize, replay
  std::string scenario;    ///< identity
  std::string plan;        ///< packed scenarios::Plan
  std::string avoid_slot;  ///< "node/slot" that must not run it where there is another, or empty
  caf::timespan timeout{};
};

/// Fenced, for a while: what is unfinished at expiry is leased again under a higher fence.
struct Lease {
  std::uint64_t session = 0;
  std::uint64_t fence = 0;
  caf::timespan expires_in{};
  std::vector<LeafOrder> orders;
};

/// A scenario as text, for nodes that have not seen its identity.
struct ScenarioText {
  std::string identity;
  std::string file;  ///< absolute path; relative paths in the text are meant from its folder
  std::string text;
  std::string variant;
};

/// A node's word that an execution is over; the judgement follows from its events.
struct LeafReport {
  std::uint64_t session = 0;
  std::uint64_t fence = 0;
  std::string execution;
  std::string slot;          ///< "node/slot"
  std::uint64_t events = 0;  ///< how many the leaf streamed
  bool clean = false;
  std::string detail;
  std::int64_t wall_ms = 0;
};

struct CampaignRequest {
  ScenarioText scenario;
  std::uint64_t seed = 0;
};

/// For progress lines.
struct Progress {
  std::string phase;                  ///< "baseline", "singles", "pairs", "confirm", "done"
  std::uint64_t done = 0, known = 0;  ///< explored leaves
  std::uint64_t executions = 0, failing = 0, findings = 0;
  std::uint32_t slots = 0;
  std::int64_t elapsed_ms = 0;
  std::string note;  ///< something a user should read once, or empty
  bool finished = false;
};

template <class F>
typename F::result_type inspect(F& f, NodeInfo& x) {
  return f(caf::meta::type_name("NodeInfo"), x.protocol, x.name, x.slots, x.incarnation, x.capabilities);
}
template <class F>
typename F::result_type inspect(F& f, Welcome& x) {
  return f(caf::meta::type_name("Welcome"), x.admitted, x.refusal, x.session, x.events_endpoint, x.renew_every);
}
template <class F>
typename F::result_type inspect(F& f, LeafOrder& x) {
  return f(caf::meta::type_name("LeafOrder"), x.execution, x.address, x.purpose, x.scenario, x.plan, x.avoid_slot,
           x.timeout);
}
template <class F>
typename F::result_type inspect(F& f, Lease& x) {
  return f(caf::meta::type_name("Lease"), x.session, x.fence, x.expires_in, x.orders);
}
template <class F>
typename F::result_type inspect(F& f, ScenarioText& x) {
  return f(caf::meta::type_name("ScenarioText"), x.identity, x.file, x.text, x.variant);
}
template <class F>
typename F::result_type inspect(F& f, LeafReport& x) {
  return f(caf::meta::type_name("LeafReport"), x.session, x.fence, x.execution, x.slot, x.events, x.clean, x.detail,
           x.wall_ms);
}
template <class F>
typename F::result_type inspect(F& f, CampaignRequest& x) {
  return f(caf::meta::type_name("CampaignRequest"), x.scenario, x.seed);
}
template <class F>
typename F::result_type inspect(F& f, Progress& x) {
  return f(caf::meta::type_name("Progress"), x.phase, x.done, x.known, x.executions, x.failing, x.findings, x.slots,
           x.elapsed_ms, x.note, x.finished);
}

}  // namespace leafcutter::actors

CAF_BEGIN_TYPE_ID_BLOCK(leafcutter_atoms, caf::first_custom_type_id)
// Ten characters at most (CAF 0.17).
CAF_ADD_ATOM(leafcutter_atoms, leafcutter::actors, hello_atom, "hello")
CAF_ADD_ATOM(leafcutter_atoms, leafcutter::actors, want_atom, "want")
CAF_ADD_ATOM(leafcutter_atoms, leafcutter::actors, lease_atom, "lease")
CAF_ADD_ATOM(leafcutter_atoms, leafcutter::actors, renew_atom, "renew")
CAF_ADD_ATOM(leafcutter_atoms, leafcutter::actors, done_atom, "done")
CAF_ADD_ATOM(leafcutter_atoms, leafcutter::actors, learn_atom, "learn")
CAF_ADD_ATOM(leafcutter_atoms, leafcutter::actors, cancel_atom, "cancel")
CAF_ADD_ATOM(leafcutter_atoms, leafcutter::actors, submit_atom, "submit")
CAF_ADD_ATOM(leafcutter_atoms, leafcutter::actors, watch_atom, "watch")
CAF_ADD_ATOM(leafcutter_atoms, leafcutter::actors, execute_atom, "execute")
CAF_ADD_ATOM(leafcutter_atoms, leafcutter::actors, drain_atom, "drain")
CAF_END_TYPE_ID_BLOCK(leafcutter_atoms)

namespace leafcutter::actors {

/// The NODE actor interface.
using node_actor = caf::typed_actor<
    // Takes a scenario that leases will name by its identity.
    caf::reacts_to<learn_atom, ScenarioText>,
    // Takes work, for a while.
    caf::reacts_to<lease_atom, Lease>,
    // Stops the executions of a fence; nothing is reported for them any more.
    caf::reacts_to<cancel_atom, std::uint64_t>,
    // Takes no more work and ends when what runs has ended.
    caf::reacts_to<drain_atom>>;

/// The COORDINATOR actor interface.
using coordinator_actor = caf::typed_actor<
    // Admits a node, or says why not. A newer incarnation of a name replaces the older one.
    caf::replies_to<hello_atom, NodeInfo, node_actor>::with<Welcome>,
    // A node has this many free slots; leases follow when there is work. (session, free slots)
    caf::reacts_to<want_atom, std::uint64_t, std::uint32_t>,
    // A node is alive and still works on its leases. (session)
    caf::reacts_to<renew_atom, std::uint64_t>,
    // An execution is over.
    caf::reacts_to<done_atom, LeafReport>,
    // Starts, or resumes, the campaign; the answer is its name.
    caf::replies_to<submit_atom, CampaignRequest>::with<std::string>,
    // How the campaign stands.
    caf::replies_to<watch_atom, std::string>::with<Progress>,
    // Stops the campaign; its state is kept. (campaign)
    caf::reacts_to<cancel_atom, std::string>>;

/// The SLOT actor interface (local to a node).
using slot_actor = caf::typed_actor<
    // Runs one leaf and answers when it is over and its events are spooled.
    caf::replies_to<execute_atom, LeafOrder>::with<LeafReport>,
    // Kills the running leaf, if it is this execution.
    caf::reacts_to<cancel_atom, std::string>>;

}  // namespace leafcutter::actors

CAF_BEGIN_TYPE_ID_BLOCK(leafcutter, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(leafcutter, (leafcutter::actors::NodeInfo))
CAF_ADD_TYPE_ID(leafcutter, (leafcutter::actors::Welcome))
CAF_ADD_TYPE_ID(leafcutter, (leafcutter::actors::LeafOrder))
CAF_ADD_TYPE_ID(leafcutter, (leafcutter::actors::Lease))
CAF_ADD_TYPE_ID(leafcutter, (leafcutter::actors::ScenarioText))
CAF_ADD_TYPE_ID(leafcutter, (leafcutter::actors::LeafReport))
CAF_ADD_TYPE_ID(leafcutter, (leafcutter::actors::CampaignRequest))
CAF_ADD_TYPE_ID(leafcutter, (leafcutter::actors::Progress))
CAF_ADD_TYPE_ID(leafcutter, (leafcutter::actors::node_actor))
CAF_ADD_TYPE_ID(leafcutter, (leafcutter::actors::coordinator_actor))
CAF_ADD_TYPE_ID(leafcutter, (leafcutter::actors::slot_actor))
CAF_END_TYPE_ID_BLOCK(leafcutter)
