// The calls by which a child that already runs under its own filter hands the listener over: the same system calls a
// service makes, told apart by a mark.
#pragma once

#include <array>
#include <cstdint>

namespace leafcutter::node {

/// The kernel gives a filter all six argument registers, also those that a call does not take. A call that carries
/// these three values where it takes no argument comes from install_filter(); nothing else puts them there.
inline constexpr std::array<std::uint64_t, 3> handover_mark = {0x6c656166'63757474ull, 0x9d3c5b17'e2a84f60ull,
                                                               0x1f7ab0c4'58d6e293ull};

/// What install_filter() still has to call after its filter is in force; each takes at most three arguments.
inline constexpr std::array<const char*, 3> handover_calls = {"sendmsg", "recvmsg", "close"};

}  // namespace leafcutter::node
