// The life of `leafcutter proxy` between the start of its proxies and its end: phases, signals, edits of the document.
#pragma once

#include <memory>
#include <string>

#include "commands/interrupts.hpp"
#include "commands/proxy_view.hpp"
#include "node/runs/journal_file.hpp"
#include "node/runs/listen_names.hpp"
#include "node/runs/runner.hpp"
#include "node/runs/watch.hpp"

namespace leafcutter::commands {

struct ProxySession {
  node::runs::Runner& runner;
  ProxyView& view;
  node::runs::JournalFile* journal;  ///< may be null
  node::runs::FileWatch* watch;      ///< may be null
  Interrupts& interrupts;
  node::runs::ListenNames& names;
  std::string file;
  node::runs::Time start;  ///< what times count from
};

/// Until the last phase ends or a signal comes. The exit code.
int run_proxy_session(const ProxySession& session);

}  // namespace leafcutter::commands
