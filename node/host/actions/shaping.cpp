// Delay, loss and rate of a whole interface by the kernel's traffic control: a htb root with a handle of our own, one
// class that is shaped, and one for management traffic that is not. Only a root that the kernel chose is replaced, and
// only the one with our handle is removed.
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.hpp"
#include "node/host/actions/effect.hpp"
#include "node/host/actions/execute.hpp"

namespace leafcutter::node::host {
namespace {

using base::Error;
using base::ErrorCode;
using Words = std::vector<std::string>;

Error cannot_shape(const std::string& why) { return {ErrorCode::unavailable, why, {}}; }

std::string tc_program() {
  for (const auto* path : {"/usr/sbin/tc", "/sbin/tc", "/usr/bin/tc"})
    if (::access(path, X_OK) == 0) return path;
  return {};
}

CommandEnd run_tc(const Words& words) {
  CommandLine line;
  line.argv = {tc_program()};
  line.argv.insert(line.argv.end(), words.begin(), words.end());
  line.within = std::chrono::seconds(10);
  if (line.argv[0].empty()) return {CommandEnd::How::not_executed, 0, "tc is not installed (package iproute2)", {}};
  return execute(line);
}

/// Whether all of that can be done, tried in a network of its own.
bool works(const std::vector<Words>& commands) {
  ExecuteOptions options;
  options.fresh_network = true;
  for (const auto& words : commands) {
    for (const auto& word : words) options.input += word + " ";
    options.input += "\n";
  }
  CommandLine line;
  line.argv = {tc_program(), "-batch", "-"};
  line.within = std::chrono::seconds(10);
  return execute(line, options).good();
}

Words root_command(const std::string& interface, const std::string& handle) {
  return {"qdisc", "add", "dev", interface, "root", "handle", handle + ":", "htb", "default", "10"};
}
Words class_command(const std::string& interface, const std::string& handle, const std::string& minor) {
  return {"class", "add",  "dev",     interface, "parent", handle + ":", "classid", handle + ":" + minor,
          "htb",   "rate", "100gbit", "quantum", "200000"};
}
Words filter_command(const std::string& interface, const std::string& handle, bool six, bool source, unsigned port) {
  return {"filter",
          "add",
          "dev",
          interface,
          "parent",
          handle + ":",
          "protocol",
          six ? "ipv6" : "ip",
          "prio",
          six ? "2" : "1",
          "u32",
          "match",
          six ? "ip6" : "ip",
          source ? "sport" : "dport",
          std::to_string(port),
          "0xffff",
          "flowid",
          handle + ":20"};
}

/// All of it, in order; the first makes what removing the root removes.
std::vector<Words> shape_commands(const Json& recipe) {
  const auto interface = recipe.at("interface").get<std::string>(), handle = recipe.at("handle").get<std::string>();
  std::vector<Words> out = {root_command(interface, handle), class_command(interface, handle, "20"),
                            class_command(interface, handle, "10")};
  // Management is let out before anything is shaped.
  for (const auto& port : recipe.at("management"))
    for (const bool six : {false, true})
      for (const bool source : {false, true})
        out.push_back(filter_command(interface, handle, six, source, port.get<unsigned>()));
  Words leaf = {"qdisc", "add", "dev", interface, "parent", handle + ":10"};
  const auto delay = recipe.value("delay", std::int64_t{0});
  const auto loss = recipe.value("loss", 0U), rate = recipe.value("rate", 0U);
  if (delay > 0 || loss > 0) {
    leaf.insert(leaf.end(), {"netem", "limit", "100000"});
    if (delay > 0) leaf.insert(leaf.end(), {"delay", std::to_string(delay / 1000) + "us"});
    if (loss > 0) leaf.insert(leaf.end(), {"loss", std::to_string(loss) + "%"});
    if (rate > 0) leaf.insert(leaf.end(), {"rate", std::to_string(rate) + "kbit"});
  } else {
    leaf.insert(leaf.end(), {"tbf", "rate", std::to_string(rate) + "kbit", "burst", "64kb", "latency", "400ms"});
  }
  out.push_back(std::move(leaf));
  return out;
}

bool elsewhere(const Intent& intent) {
  return intent.boot == boot_id() && intent.recipe.at("namespace").get<std::string>() != network_namespace();
}

base::Status apply_shape(const Intent& intent, const EffectContext&) {
  for (const auto& words : shape_commands(intent.recipe)) {
    const auto end = run_tc(words);
    if (!end.good()) return Error{ErrorCode::io, "tc " + words[0] + " " + words[1] + ": " + end.text(), {}};
  }
  return base::ok();
}

base::Status check_shape(const Intent& intent, const EffectContext&) {
  const auto root = root_queue(intent.recipe.at("interface").get<std::string>());
  if (!root) return root.error();
  if (root->handle == intent.recipe.at("handle").get<std::string>() + ":") return base::ok();
  return cannot_shape("the root queue is " + root->kind + " " + root->handle + ", not ours");
}

base::Status remove_shape(const Intent& intent, const EffectContext&) {
  if (intent.boot != boot_id()) return base::ok();  // queues do not outlive a boot
  if (elsewhere(intent))
    return cannot_shape("it is in the network namespace " + intent.recipe.at("namespace").get<std::string>() +
                        "; run `leafcutter host recover` there");
  const auto interface = intent.recipe.at("interface").get<std::string>();
  const auto root = root_queue(interface);
  if (!root) return root.error();
  const auto handle = intent.recipe.at("handle").get<std::string>() + ":";
  if (root->handle != handle) return base::ok();
  const auto end = run_tc({"qdisc", "del", "dev", interface, "root", "handle", handle});
  if (end.good()) return base::ok();
  return Error{ErrorCode::io, "tc qdisc del: " + end.text(), {}};
}

base::Status no_shape(const Intent& intent, const EffectContext&) {
  if (intent.boot != boot_id()) return base::ok();
  if (elsewhere(intent)) return cannot_shape("it is in another network namespace");
  const auto root = root_queue(intent.recipe.at("interface").get<std::string>());
  if (!root) return root.error();
  if (root->handle == intent.recipe.at("handle").get<std::string>() + ":")
    return cannot_shape("our root queue is still there");
  // Somebody else may have set another one since; that is not ours to judge.
  const bool back = root->handle != "0:" || root->kind == intent.recipe.at("before").get<std::string>();
  return back ? base::ok()
              : base::Status(cannot_shape("the root queue was " + intent.recipe.at("before").get<std::string>() +
                                          " and is " + root->kind));
}

}  // namespace

const Effect shape_effect = {apply_shape, check_shape, remove_shape, no_shape};

std::string network_namespace() {
  struct stat about {};
  return ::stat("/proc/self/ns/net", &about) == 0 ? std::to_string(about.st_ino) : std::string("unknown");
}

base::Expected<RootQueue> root_queue(const std::string& interface) {
  const auto end = run_tc({"-j", "qdisc", "show", "dev", interface});
  if (end.how == CommandEnd::How::not_executed) return cannot_shape(end.error);
  const auto json = end.good() ? Json::parse(end.output, nullptr, false) : Json();
  if (!json.is_array()) return cannot_shape("traffic control does not know the interface " + interface);
  for (const auto& queue : json)
    if (queue.is_object() && queue.value("root", false))
      return RootQueue{queue.value("kind", ""), queue.value("handle", "")};
  return RootQueue{"none", "0:"};
}

base::Status can_shape(bool netem, bool rate, bool management) {
  if (tc_program().empty()) return cannot_shape("tc is not installed (package iproute2)");
  const auto root = root_command("lo", "1f"), child = class_command("lo", "1f", "10");
  if (!works({root, child}))
    return cannot_shape("traffic control cannot be used here: it needs CAP_NET_ADMIN and sch_htb");
  if (netem && !works({root, child, {"qdisc", "add", "dev", "lo", "parent", "1f:10", "netem", "delay", "1ms"}}))
    return cannot_shape(
        "this kernel has no netem (CONFIG_NET_SCH_NETEM), which delay and loss need; `rate` alone would do");
  if (rate && !netem &&
      !works({root,
              child,
              {"qdisc", "add", "dev", "lo", "parent", "1f:10", "tbf", "rate", "1mbit", "burst", "64kb", "latency",
               "1ms"}}))
    return cannot_shape("this kernel has no tbf (CONFIG_NET_SCH_TBF), which rate needs");
  if (management && !works({root, child, filter_command("lo", "1f", true, false, 22)}))
    return cannot_shape(
        "this kernel has no u32 classifier (CONFIG_NET_CLS_U32), by which management traffic is let out");
  return base::ok();
}

}  // namespace leafcutter::node::host
