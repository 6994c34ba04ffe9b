// Which argument of a system call names the object it acts on. One row a call; the families are scenarios' own.
#pragma once

#include <string>

namespace leafcutter::node {

/// An index into the call's arguments, or `none`.
inline constexpr int none = -1;

struct CallShape {
  enum class Object {
    descriptor,  ///< argument `fd` is what is read, written or synced
    path,        ///< argument `path`, relative to `folder` (a dirfd argument; none: the working directory)
    address,     ///< argument `path` points at a socket address of the length in argument `size`
    mapping,     ///< argument `path` is an address in a mapped file
    nothing,     ///< the call acts on no object: a clock, a sleep
  };
  const char* name;
  int number;
  Object object;
  int fd = none;
  int path = none;
  int folder = none;
  int size = none;
  int source = none;  ///< the descriptor that its bytes come from, of calls that move them to another one, `fd`
};

/// Null when the call is not known here.
const CallShape* call_shape(int number);
const CallShape* call_shape(const std::string& name);

}  // namespace leafcutter::node
