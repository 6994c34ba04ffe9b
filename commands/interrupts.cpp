#include "commands/interrupts.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>

#include <csignal>

namespace leafcutter::commands {

Interrupts::Interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool Interrupts::wait(std::chrono::milliseconds within) {
  pollfd item{fd_.get(), POLLIN, 0};
  if (::poll(&item, 1, static_cast<int>(within.count())) > 0) {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      seen_ = true;
      if (number_ == 0) number_ = static_cast<int>(info.ssi_signo);
    }
  }
  return seen_;
}

}  // namespace leafcutter::commands
