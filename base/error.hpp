// Errors as values: what went wrong, where in the user's file, and what would do instead.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace leafcutter::base {

/// A position in a file that a user wrote. Lines and columns count from 1; 0 means unknown.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
};

enum class ErrorCode {
  bad_input,    ///< the user's file, argument or address is wrong; nothing was run (exit 2)
  unavailable,  ///< this host cannot do it; the message says what would enable it
  io,           ///< the operating system refused
  protocol,     ///< bytes from outside do not mean anything
  timeout,      ///< a deadline passed; the message names what was awaited
  conflict,     ///< somebody else holds it
  internal,     ///< a defect of ours
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  Place where = {};

  /// "file:line:column: message", without the parts that are unknown.
  std::string text() const;
};

/// The message of `errno` value `error`, with `what` in front: "open /x: No such file or directory".
Error system_error(const std::string& what, int error);

/// A value or an Error. Reading the side that is not there throws std::bad_variant_access (a defect of the caller).
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Expected(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  Error& error() { return std::get<1>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

/// For operations that yield nothing: `return ok();`.
using Status = Expected<std::monostate>;
inline Status ok() { return std::monostate{}; }

}  // namespace leafcutter::base
