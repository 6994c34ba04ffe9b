#include "harness.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <zmq.hpp>

#include "base/text.hpp"
#include "protocols/stream.hpp"
#include "scenarios/loader.hpp"

namespace leafcutter::node::testing {

namespace fs = std::filesystem;

const char* const one_service = R"(
leafcutter: 1
name: one
services:
  shop:
    run: [bin/web, --port, "8080", --data, "${data}"]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
)";

std::string shop_and_broker(const std::string& peer) {
  return R"(
leafcutter: 1
name: two
services:
  broker:
    run: [bin/web, --port, "8081", --data, "${data}"]
    ports: { http: { port: 8081, protocol: http } }
    ready: { http: /health }
  shop:
    run: [bin/web, --port, "8080", --data, "${data}", --peer, ")" +
         peer + R"("]
    ports: { http: { port: 8080, protocol: http } }
    ready: { http: /health }
    needs: [broker]
)";
}

FakeCourier::FakeCourier(const std::string& folder)
    : endpoint_("ipc://" + folder + "/events.sock"), thread_([this] { run(); }) {}

FakeCourier::~FakeCourier() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  thread_.join();
}

std::vector<Event> FakeCourier::events(const std::string& execution) const {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(execution);
  return found == events_.end() ? std::vector<Event>{} : found->second;
}

void FakeCourier::mute(bool muted) {
  const std::lock_guard lock(mutex_);
  muted_ = muted;
}

std::uint64_t FakeCourier::duplicates() const {
  const std::lock_guard lock(mutex_);
  return duplicates_;
}

void FakeCourier::run() {
  zmq::context_t context;
  zmq::socket_t router(context, zmq::socket_type::router);
  router.set(zmq::sockopt::linger, 0);
  router.bind(endpoint_);
  std::map<std::string, bool> complete;
  for (;;) {
    zmq::pollitem_t item{router.handle(), 0, ZMQ_POLLIN, 0};
    zmq::poll(&item, 1, std::chrono::milliseconds(20));
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    zmq::message_t id, header_bytes, chunk;
    while (router.recv(id, zmq::recv_flags::dontwait) && router.recv(header_bytes) && router.recv(chunk)) {
      const auto header = protocols::decode_batch_header(header_bytes.to_string_view());
      if (!header) continue;
      auto& stored = events_[header->execution];
      if (header->base < stored.size()) ++duplicates_;
      if (header->base == stored.size()) {
        auto events = protocols::decode_chunks(chunk.to_string_view());
        if (!events || events->size() != header->count) continue;
        for (auto& event : *events) stored.push_back(std::move(event));
        if (header->last) complete[header->execution] = true;
      }
      if (muted_) continue;
      const auto ack = protocols::encode(protocols::Ack{header->execution, stored.size(), complete[header->execution]});
      router.send(id, zmq::send_flags::sndmore);
      router.send(zmq::buffer(ack), zmq::send_flags::none);
    }
  }
}

std::vector<Event> Ran::of(const std::string& kind, const std::string& lane) const {
  std::vector<Event> out;
  for (const auto& event : events)
    if (event.kind == kind && (lane.empty() || event.lane == lane)) out.push_back(event);
  return out;
}

Value Ran::end() const {
  if (events.empty() || events.back().kind != "leaf.end") return {{"cause", "no leaf.end: " + exit.detail}};
  return events.back().attrs;
}

std::string Ran::text() const {
  std::ostringstream out;
  out << "exit " << (exit.clean ? "clean" : exit.detail) << " after " << took.count() << " ms\n";
  for (const auto& event : events)
    out << event.at.count() / 1000 << " us " << event.lane << "#" << event.seq << " " << event.kind << " "
        << event.attrs << "\n";
  return out.str();
}

Nest::Nest() : Nest(NURSERY_PROGRAM) {}

Nest::Nest(const std::string& nursery_program) {
  fs::create_directory(folder() + "/bin");
  fs::copy_file(WEB_PROGRAM, folder() + "/bin/web");
  courier_ = std::make_unique<FakeCourier>(run_folder_.path());
  auto started = Launcher::start(nursery_program, run_folder_.path());
  if (!started) throw std::runtime_error(started.error().text());
  launcher_ = std::move(*started);
}

Nest::~Nest() { launcher_.reset(); }

void Nest::write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(folder() + "/" + path).parent_path());
  std::ofstream(folder() + "/" + path) << text;
}

std::string Nest::read(const std::string& path) const {
  std::ifstream in(scenario_folder_.path() + "/" + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

scenarios::Scenario Nest::give(const std::string& text, const std::string& identity) {
  auto loaded = scenarios::load_text(text, folder() + "/scenario.yaml");
  for (const auto& error : loaded.errors) ADD_FAILURE() << error.text();
  if (!loaded.scenario) throw std::runtime_error("the scenario does not load");
  const auto given = launcher_->give(*loaded.scenario, identity);
  if (!given) throw std::runtime_error(given.error().text());
  return *loaded.scenario;
}

LeafJob Nest::job(const scenarios::Plan& plan, const std::string& identity) {
  LeafJob job;
  const auto number = std::to_string(next_++);
  job.address = "test/0/" + number;
  job.execution = job.address + "#1";
  job.scenario = identity;
  job.plan = plan;
  job.events_endpoint = courier_->endpoint();
  return job;
}

std::string Nest::start(const LeafJob& job) {
  {
    const std::lock_guard lock(mutex_);
    started_[job.execution] = std::chrono::steady_clock::now();
  }
  const auto status = launcher_->launch(job, [this](const LeafExit& exit) {
    const std::lock_guard lock(mutex_);
    if (exits_.contains(exit.execution)) ADD_FAILURE() << exit.execution << " ended twice";
    exits_[exit.execution] = exit;
    ended_[exit.execution] = std::chrono::steady_clock::now();
    changed_.notify_all();
  });
  if (!status) ADD_FAILURE() << status.error().text();
  return job.execution;
}

Ran Nest::wait(const std::string& execution, std::chrono::seconds within) {
  Ran ran;
  {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, within, [&] { return exits_.contains(execution); })) {
      ran.exit = exits_[execution];
      ran.began = started_[execution];
      ran.ended = ended_[execution];
      ran.took = std::chrono::duration_cast<std::chrono::milliseconds>(ran.ended - ran.began);
    } else {
      ran.exit.detail = "the leaf was still running at the test's deadline";
    }
  }
  ran.events = courier_->events(execution);
  return ran;
}

bool Nest::wait_for(const std::string& execution, const std::string& kind, std::chrono::seconds within) {
  return eventually(
      [&] {
        const auto events = courier_->events(execution);
        return std::any_of(events.begin(), events.end(), [&](const auto& event) { return event.kind == kind; });
      },
      within);
}

std::vector<pid_t> processes_with(const std::string& marker) {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (const auto* entry = ::readdir(proc.get())) {
    const auto pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    // It may be gone by now.
    const auto text = base::read_file("/proc/" + std::to_string(pid) + "/cmdline");
    if (text && text->find(marker) != std::string::npos) out.push_back(pid);
  }
  return out;
}

pid_t parent_of(pid_t pid) {
  const auto text = base::read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto end = text ? text->rfind(')') : std::string::npos;  // the program's name may have spaces in it
  pid_t parent = -1;
  if (end != std::string::npos) std::sscanf(text->c_str() + end + 1, " %*c %d", &parent);
  return parent;
}

pid_t own_nursery() {
  for (const auto pid : processes_with("leaf-nursery"))
    if (parent_of(pid) == ::getpid()) return pid;
  return -1;
}

std::string went(const Ran& ran, const std::string& lane) {
  for (const auto& event : ran.of("log", lane))
    if (const auto line = event.attrs.value("line", ""); line.starts_with("went ")) return line.substr(5);
  return "no line of " + lane;
}

}  // namespace leafcutter::node::testing
