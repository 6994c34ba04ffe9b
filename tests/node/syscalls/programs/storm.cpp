// storm PATH HOW COUNT WRITES [tally]: COUNT tasks write one byte WRITES times each; exits 0 when every write wrote.
// HOW: "fork" for processes, else threads while a timer interrupts the process every millisecond; its handler lets
// calls restart ("restart", as Go's and most runtimes' do) or makes them say so, and they are repeated ("repeat").
// "preempt": as Go's scheduler, SIGURG to each thread by itself, all the time; "preempt-slowly": every millisecond.
// With "tally" a write may fail with EIO; at the end it is said how many did, and how many were interrupted.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<int> interruptions = 0;
std::atomic<int> failures = 0, told_interrupted = 0;
bool repeats = false, tallies = false;

void on_alarm(int) { ++interruptions; }

bool write_times(int fd, int times) {
  for (int i = 0; i < times; ++i)
    while (::write(fd, "x", 1) != 1) {
      if (errno == EIO && tallies) {
        ++failures;
        break;
      }
      if (errno != EINTR || !repeats) return false;
      ++told_interrupted;
    }
  return true;
}

void say_tally() {
  const auto line = "failed " + std::to_string(failures) + "\ninterrupted " + std::to_string(told_interrupted) + "\n";
  if (::write(1, line.data(), line.size()) < 0) ::_exit(97);
}

int by_processes(int fd, int processes, int writes) {
  for (int i = 0; i < processes; ++i)
    if (::fork() == 0) ::_exit(write_times(fd, writes) ? 0 : 1);
  int failed = 0;
  for (int status = 0; ::wait(&status) > 0;) failed += status != 0 ? 1 : 0;
  return failed;
}

int preempted(int fd, int count, int writes, std::chrono::milliseconds gap) {
  const timespec pause{0, std::chrono::nanoseconds(gap).count()};
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGURG, &action, nullptr);
  std::atomic<int> failed = 0, ended = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      failed += write_times(fd, writes) ? 0 : 1;
      ++ended;
    });
  while (ended < count) {
    for (auto& thread : threads) ::pthread_kill(thread.native_handle(), SIGURG);
    std::this_thread::yield();
    if (pause.tv_nsec > 0) ::ppoll(nullptr, 0, &pause, nullptr);
  }
  for (auto& thread : threads) thread.join();
  return failed + (interruptions > 0 ? 0 : 1);
}

int by_threads(int fd, int count, int writes) {
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = repeats ? 0 : SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval every{{0, 1000}, {0, 1000}};
  ::setitimer(ITIMER_REAL, &every, nullptr);
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&] { failed += write_times(fd, writes) ? 0 : 1; });
  // The kernel gives a process's signal to its first thread if it can; the others are to have them.
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  for (auto& thread : threads) thread.join();
  return failed + (interruptions > 0 ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 99;
  const auto fd = ::open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0) return 98;
  const std::string how = argv[2];
  repeats = how == "repeat";
  const auto count = std::stoi(argv[3]), writes = std::stoi(argv[4]);
  tallies = argc > 5 && std::string(argv[5]) == "tally";
  using std::chrono::milliseconds;
  if (how == "preempt" || how == "preempt-slowly")
    return preempted(fd, count, writes, milliseconds(how == "preempt" ? 0 : 1));
  const auto failed = how == "fork" ? by_processes(fd, count, writes) : by_threads(fd, count, writes);
  if (tallies) say_tally();
  return failed;
}
