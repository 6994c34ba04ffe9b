#include "node/actors/workbench.hpp"

#include <algorithm>

namespace leafcutter::node {

Workbench::Workbench(std::string node, std::uint32_t slots) : node_(std::move(node)), busy_(slots) {}

void Workbench::add(const actors::Lease& lease) {
  for (const auto& order : lease.orders) waiting_.push_back({order, lease.session, lease.fence});
}

std::optional<std::size_t> Workbench::slot_for(const actors::LeafOrder& order) const {
  for (std::size_t slot = 0; slot < busy_.size(); ++slot) {
    if (busy_[slot].busy) continue;
    // The only slot there is runs what it should rather not; with others, the order waits for one of them.
    if (busy_.size() > 1 && order.avoid_slot == slot_name(slot)) continue;
    return slot;
  }
  return std::nullopt;
}

std::vector<Workbench::Start> Workbench::start() {
  std::vector<Start> out;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto slot = slot_for(at->order);
    if (!slot) {
      ++at;
      continue;
    }
    busy_[*slot] = {true, *at};
    out.push_back({*slot, std::move(*at)});
    at = waiting_.erase(at);
  }
  return out;
}

std::optional<Workbench::Task> Workbench::finished(std::size_t slot) {
  auto task = std::move(busy_.at(slot).task);
  busy_.at(slot) = {};
  return task;
}

std::vector<Workbench::Running> Workbench::cancel(std::uint64_t fence) {
  std::vector<Running> running;
  std::erase_if(waiting_, [&](const Task& task) { return task.fence == fence; });
  for (std::size_t slot = 0; slot < busy_.size(); ++slot) {
    auto& task = busy_[slot].task;
    if (!task || task->fence != fence) continue;
    running.push_back({slot, task->order.execution});
    task.reset();
  }
  return running;
}

std::vector<Workbench::Running> Workbench::cancel_all() {
  std::vector<Running> running;
  waiting_.clear();
  for (std::size_t slot = 0; slot < busy_.size(); ++slot) {
    auto& task = busy_[slot].task;
    if (!task) continue;
    running.push_back({slot, task->order.execution});
    task.reset();
  }
  return running;
}

std::uint32_t Workbench::free() const {
  const auto idle_slots =
      static_cast<std::size_t>(std::count_if(busy_.begin(), busy_.end(), [](const Slot& slot) { return !slot.busy; }));
  return static_cast<std::uint32_t>(idle_slots - std::min(idle_slots, waiting_.size()));
}

bool Workbench::idle() const {
  return waiting_.empty() && std::none_of(busy_.begin(), busy_.end(), [](const Slot& slot) { return slot.busy; });
}

}  // namespace leafcutter::node
