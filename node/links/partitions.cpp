#include "node/links/partitions.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <mutex>
#include <utility>

#include "base/text.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

/// Nobody tells of a packet that the kernel dropped; its counter is looked at so often.
constexpr auto look_interval = std::chrono::milliseconds(5);

std::vector<std::string> side_of(const scenarios::Fault& fault, const char* name) {
  std::vector<std::string> names;
  const auto found = fault.params.find(name);
  if (found == fault.params.end() || !found->is_array()) return names;
  for (const auto& one : *found)
    if (one.is_string()) names.push_back(one.get<std::string>());
  return names;
}

bool is_among(const std::vector<std::string>& side, const std::string& name) {
  return std::find(side.begin(), side.end(), name) != side.end();
}

/// What each link across holds back.
std::map<std::string, proxy::Flow> flows_of(const scenarios::Fault& fault, const std::vector<scenarios::Link>& links) {
  const auto first = side_of(fault, "between"), second = side_of(fault, "and");
  const auto flow = fault.params.value("flow", "both");
  std::map<std::string, proxy::Flow> flows;
  for (const auto& link : links) {
    const bool there = is_among(first, link.from) && is_among(second, link.to);
    const bool back = is_among(second, link.from) && is_among(first, link.to);
    if (!there && !back) continue;
    // What goes to the second set goes up a link that leads there, and down one that leads back.
    flows[link.id()] = flow == "both"                   ? proxy::Flow::both
                       : (flow == "to-second") == there ? proxy::Flow::to_upstream
                                                        : proxy::Flow::to_client;
  }
  return flows;
}

std::chrono::nanoseconds partition_length(const scenarios::Fault& fault) {
  const auto length = base::parse_duration(fault.params.value("for", ""));
  return length ? *length : std::chrono::nanoseconds{};
}

}  // namespace

struct Partitions::Shared {
  explicit Shared(PartitionContext given) : context(std::move(given)) {}
  PartitionContext context;
  std::vector<std::shared_ptr<Active>> active;
};

/// One partition, from its beginning until it has healed. On the event loop's thread, but for what the engine tells.
class Partitions::Active : public std::enable_shared_from_this<Active> {
 public:
  Active(std::shared_ptr<Shared> shared, const SiteBook::Strike& strike, Value when)
      : shared_(std::move(shared)),
        index_(strike.index),
        fault_(strike.fault),
        when_(std::move(when)),
        end_(shared_->context.io),
        look_(shared_->context.io) {
    cut_.id = "partition " + std::to_string(index_);
    cut_.flows = flows_of(fault_, shared_->context.links);
  }

  base::Status begin() {
    auto& context = shared_->context;
    busy_ = fault_.text();
    context.activity.begin(busy_);
    cut_.met = [self = weak_from_this()](const std::string& lane, const proxy::Event& event) {
      if (const auto here = self.lock()) here->met(lane, event);
    };
    // From before it is in force: what it stops at once may be the event that heals it.
    released_before_ = context.sites.releases(index_);
    wake_ = context.sites.wake_at_release([self = weak_from_this(), &io = context.io] {
      asio::post(io, [self] {
        if (const auto here = self.lock()) here->look_for_release();
      });
    });
    for (auto* link : crossed(context.connections)) {
      lost_before_ += link->lost_connects();
      if (auto status = link->lose_connects(true); !status) return status;
    }
    for (auto* link : crossed(context.datagrams))
      if (auto status = link->begin_cut(cut_); !status) return status;
    const auto open = context.detour.begin_cut(cut_);
    if (!open) return open.error();
    open_ = *open;
    end_.expires_after(std::chrono::duration_cast<steady_clock::duration>(partition_length(fault_)));
    end_.async_wait([self = shared_from_this()](const auto& cancelled) {
      if (!cancelled) self->heal("its time is over");
    });
    look();
    return base::ok();
  }

 private:
  template <class Link>
  std::vector<Link*> crossed(const std::vector<Link*>& all) const {
    std::vector<Link*> links;
    for (auto* link : all)
      if (cut_.crosses(link->lane())) links.push_back(link);
    return links;
  }

  /// On an engine's thread.
  void met(const std::string& lane, const proxy::Event& event) {
    bytes_ += event.bytes;
    ++strikes_;
    fire({{"met", "bytes"},
          {"link", lane},
          {"conn", event.connection},
          {"direction", event.direction == proxy::Direction::to_upstream ? "to-service" : "to-caller"},
          {"bytes", event.bytes}});
  }

  void fire(Value first) {
    if (fired_.exchange(true)) return;
    auto links = Value::array();
    for (const auto& [lane, flow] : cut_.flows) links.push_back(lane);
    Value evidence = {{"links", std::move(links)}, {"open_connections", open_}, {"first", std::move(first)}};
    evidence.update(when_);
    shared_->context.sites.fired(index_, std::move(evidence));
  }

  std::uint64_t lost_connects() const {
    std::uint64_t lost = 0;
    for (const auto* link : crossed(shared_->context.connections)) lost += link->lost_connects();
    return lost - lost_before_;
  }

  void look() {
    if (over_) return;
    if (lost_connects() > 0) fire({{"met", "an attempt to connect"}});
    look_.expires_after(look_interval);
    look_.async_wait([self = weak_from_this()](const auto& cancelled) {
      const auto here = self.lock();
      if (!cancelled && here) here->look();
    });
  }

  void look_for_release() {
    if (shared_->context.sites.releases(index_) > released_before_) heal("the event was seen");
  }

  void heal(const std::string& why) {
    if (std::exchange(over_, true)) return;
    auto& context = shared_->context;
    end_.cancel();
    look_.cancel();
    context.sites.forget_wake(wake_);
    const auto lost = lost_connects();
    if (lost > 0) fire({{"met", "an attempt to connect"}});
    auto status = context.detour.end_cut(cut_.id);
    for (auto* link : crossed(context.datagrams))
      if (auto healed = link->end_cut(cut_.id); !healed && status) status = healed;
    for (auto* link : crossed(context.connections))
      if (auto healed = link->lose_connects(false); !healed && status) status = healed;
    if (!status) context.failed("heal \"" + fault_.text() + "\": " + status.error().text());
    context.sites.undone(index_, "healed, " + why + ": every link across carries again; " + std::to_string(strikes_) +
                                     " pieces (" + std::to_string(bytes_) + " bytes) were stopped, and " +
                                     std::to_string(lost) + " attempts to connect");
    context.activity.end(busy_);
    std::erase(shared_->active, shared_from_this());
  }

  std::shared_ptr<Shared> shared_;
  std::size_t index_;
  scenarios::Fault fault_;
  Value when_;
  Cut cut_;
  std::string busy_;
  asio::steady_timer end_, look_;
  std::size_t open_ = 0;
  std::uint64_t lost_before_ = 0, released_before_ = 0, wake_ = 0;
  std::atomic<std::uint64_t> bytes_{0}, strikes_{0};
  std::atomic<bool> fired_{false};
  bool over_ = false;
};

Partitions::Partitions(PartitionContext context) : shared_(std::make_shared<Shared>(std::move(context))) {}

Partitions::~Partitions() = default;

void Partitions::begin(const SiteBook::Strike& strike, const Value& when) {
  auto begun = std::make_shared<std::promise<void>>();
  auto in_force = begun->get_future();
  asio::post(shared_->context.io, [this, strike, when, begun] {
    begin_here(strike, when);
    begun->set_value();
  });
  in_force.wait();
}

void Partitions::begin_here(const SiteBook::Strike& strike, const Value& when) {
  const auto active = std::make_shared<Active>(shared_, strike, when);
  shared_->active.push_back(active);
  if (const auto status = active->begin(); !status)
    shared_->context.failed("begin \"" + strike.fault.text() + "\": " + status.error().text());
}

std::vector<std::string> links_to_cover(const scenarios::Plan& plan, const std::vector<scenarios::Link>& links) {
  std::vector<std::string> ids;
  for (const auto& fault : plan.faults) {
    const auto* kind = scenarios::fault_kind(fault.kind);
    if (kind == nullptr || !kind->between) continue;
    for (const auto& [lane, flow] : flows_of(fault, links)) ids.push_back(lane);
  }
  return ids;
}

}  // namespace leafcutter::node
