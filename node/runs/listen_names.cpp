#include "node/runs/listen_names.hpp"

#include <sys/eventfd.h>

#include <optional>
#include <utility>
#include <vector>

namespace leafcutter::node::runs {
namespace {

/// The name that the proxy listens on; nothing: it is an address, or the engine will say what is wrong with it.
std::optional<proxy::HostPort> listen_name(const ProxySpec& spec) {
  const auto parsed = proxy::parse_host_port(spec.listen, "listen");
  if (!parsed || !proxy::literal_address(*parsed).empty()) return std::nullopt;
  return *parsed;
}

}  // namespace

ListenNames::ListenNames(proxy::Resolver::Lookup lookup)
    : all_known_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), resolver_(std::move(lookup)) {}

void ListenNames::ask(const Run& run) {
  std::map<std::string, proxy::HostPort> names;
  for (const auto& spec : run.proxies)
    if (const auto name = listen_name(spec)) names.emplace(name->host, proxy::HostPort{name->host, 0});
  std::uint64_t question = 0;
  {
    const std::lock_guard lock(mutex_);
    eventfd_t before = 0;
    (void)::eventfd_read(all_known_.get(), &before);
    question = ++question_;
    unanswered_ = names.size();
    answers_.clear();
    if (names.empty()) (void)::eventfd_write(all_known_.get(), 1);
  }
  // Not under the lock: what is known already is answered here and now.
  for (const auto& [host, name] : names)
    resolver_.resolve(name, [this, question, host = host](const proxy::Resolver::Addresses& addresses) {
      answered(question, host, addresses);
    });
}

void ListenNames::answered(std::uint64_t question, const std::string& host,
                           const proxy::Resolver::Addresses& addresses) {
  const std::lock_guard lock(mutex_);
  if (question != question_) return;
  answers_.insert_or_assign(host, addresses);
  if (--unanswered_ == 0) (void)::eventfd_write(all_known_.get(), 1);
}

bool ListenNames::known() const {
  const std::lock_guard lock(mutex_);
  return unanswered_ == 0;
}

base::Status ListenNames::settle(Run& run) const {
  const std::lock_guard lock(mutex_);
  for (auto& spec : run.proxies) {
    const auto name = listen_name(spec);
    if (!name) continue;
    const auto wrong = [&](const std::string& why) {
      return base::Error{base::ErrorCode::bad_input, "proxy \"" + spec.name + "\" cannot listen: " + why,
                         spec.listen_at};
    };
    const auto found = answers_.find(name->host);
    if (found == answers_.end())
      return wrong("cannot resolve \"" + name->host + "\": no name server has answered within " +
                   std::to_string(patience.count()) + " s");
    if (!found->second) return wrong(found->second.error().message);
    auto address = found->second->front();
    address.set_port(name->port);
    spec.listen_address = address.text();
  }
  return base::ok();
}

}  // namespace leafcutter::node::runs
