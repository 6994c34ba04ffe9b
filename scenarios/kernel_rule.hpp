// Rules that the kernel can carry out alone: an error that every one of a rule's calls gets, whatever it acts on,
// stands in the service's filter, and such a call costs what a failing call costs. Nobody sees it, so nobody can count
// it: only a rule that says `uncounted` is carried out so, and its evidence says that it was in force, not that it
// struck.
#pragma once

#include <string>
#include <vector>

#include "scenarios/plan.hpp"

namespace leafcutter::scenarios {

/// What a family means where a rule narrows nothing.
enum class Scope {
  leaf,     ///< a leaf's service: files are those of its data folder
  program,  ///< a program run alone: all files but the system's
};

struct KernelRule {
  std::vector<std::string> calls;  ///< those that the kernel answers; empty: it cannot
  int error = 0;                   ///< the answer
  std::string why_not;             ///< no calls: what makes a look necessary
};

/// The rule must be `errno` without `late`, for every occurrence from the first, certain, and narrowed by nothing but
/// one call of its family; and the calls must need no look at what they act on:
///   sleep, random, clock  act on nothing.
///   connect, accept       every socket, also datagram and unix ones, which a counted rule leaves alone.
///   fsync, allocate       in Scope::program the calls that work on files only (not msync: the memory may have no
///   file).
/// Read, write, send and receive serve files and sockets alike, and the remaining families have paths, of which the
/// system's are exempt: never. Calls of the rule that need a look are not among `calls`; they stay counted.
KernelRule kernel_rule(const Fault& fault, Scope scope);

}  // namespace leafcutter::scenarios
