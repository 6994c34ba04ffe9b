// SQLite with owners: a connection and prepared statements that are closed when they go, errors as values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace leafcutter::coordinator {

/// One execution of a prepared statement: bind in order, then step. Binding errors surface at the next step.
class Statement {
 public:
  Statement& bind(std::string_view text);
  Statement& bind(std::int64_t number);

  /// true: a row is there. false: done.
  base::Expected<bool> step();
  /// Steps to the end, ignoring rows.
  base::Status run();

  std::string text(int column) const;
  std::int64_t number(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}

  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0, error_ = 0;
};

class Database {
 public:
  /// WAL, synchronous FULL, foreign keys; waits up to 5 s for another connection's lock.
  static base::Expected<Database> open(const std::string& path);

  base::Expected<Statement> prepare(const char* sql);
  base::Status execute(const char* sql);
  std::int64_t changes() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_(database) {}
  std::unique_ptr<sqlite3, Close> database_;
};

/// Rolled back unless committed.
class Transaction {
 public:
  static base::Expected<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  base::Status commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace leafcutter::coordinator
