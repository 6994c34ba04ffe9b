// The audit log of this host's actions: appended to by several processes, each record on disk before anything goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/signature.hpp"
#include "base/unique_fd.hpp"
#include "protocols/audit.hpp"

namespace leafcutter::node::host {

class AuditLog {
 public:
  struct Options {
    std::string path;
    std::string node;                          ///< written into every record
    std::function<std::int64_t()> clock = {};  ///< nanoseconds since 1970; empty: the system's
  };

  /// Opens or begins it. A torn tail, as a crash leaves it, is moved to PATH.torn-RECORD and noted in a record. Errors:
  /// conflict (its content does not verify under this key: nothing is appended to it), io.
  static base::Expected<AuditLog> open(Options options, base::SigningKey key);

  AuditLog(AuditLog&&) noexcept = default;
  AuditLog& operator=(AuditLog&&) noexcept = default;

  /// Fills in sequence, time, node and previous; returns when it is on disk. What could not be written whole is taken
  /// off again.
  base::Status append(protocols::AuditRecord record);

  /// The newest record, for a coordinator to countersign.
  base::Expected<protocols::AuditAnchor> head();

 private:
  AuditLog() = default;
  base::Status catch_up();
  base::Status write_record(protocols::AuditRecord record);

  Options options_;
  std::optional<base::SigningKey> key_;
  base::UniqueFd fd_;
  std::uint64_t offset_ = 0;  ///< what has been read and verified
  std::uint64_t next_ = 0;
  std::string first_, head_;
};

/// The key of this node's log in `folder`, made when there is none.
base::Expected<base::SigningKey> audit_key(const std::string& folder);

}  // namespace leafcutter::node::host
