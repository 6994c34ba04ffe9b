#include "coordinator/ledger/sqlite.hpp"

#include <sqlite3.h>

#include <utility>

namespace leafcutter::coordinator {

using base::Error;
using base::ErrorCode;

namespace {

constexpr int busy_ms = 5000;

Error failure(sqlite3* database, const std::string& what) {
  const int code = database ? sqlite3_errcode(database) : SQLITE_NOMEM;
  const auto* message = database ? sqlite3_errmsg(database) : "out of memory";
  const bool busy = code == SQLITE_BUSY || code == SQLITE_LOCKED;
  const bool corrupt = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  return {busy ? ErrorCode::conflict : ErrorCode::io,
          what + ": " + message +
              (busy      ? "; another program holds the ledger's database open"
               : corrupt ? "; the file is damaged, move it away"
                         : ""),
          {}};
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Statement& Statement::bind(std::string_view text) {
  const int code = sqlite3_bind_text64(statement_.get(), ++bound_, text.data() ? text.data() : "", text.size(),
                                       SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK && error_ == SQLITE_OK) error_ = code;
  return *this;
}

Statement& Statement::bind(std::int64_t number) {
  const int code = sqlite3_bind_int64(statement_.get(), ++bound_, number);
  if (code != SQLITE_OK && error_ == SQLITE_OK) error_ = code;
  return *this;
}

base::Expected<bool> Statement::step() {
  if (error_ != SQLITE_OK)
    return Error{ErrorCode::internal, std::string("cannot bind a value: ") + sqlite3_errstr(error_), {}};
  switch (sqlite3_step(statement_.get())) {
    case SQLITE_ROW: return true;
    case SQLITE_DONE: return false;
    default: return failure(database_, "the ledger's database refused a statement");
  }
}

base::Status Statement::run() {
  for (;;) {
    auto row = step();
    if (!row) return row.error();
    if (!*row) return base::ok();
  }
}

std::string Statement::text(int column) const {
  const auto* bytes = sqlite3_column_text(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return bytes ? std::string(reinterpret_cast<const char*>(bytes), size) : std::string();
}

std::int64_t Statement::number(int column) const { return sqlite3_column_int64(statement_.get(), column); }

base::Expected<Database> Database::open(const std::string& path) {
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  Database database(raw);  // even a failed open hands out a connection to close
  if (code != SQLITE_OK) return failure(raw, "cannot open " + path);
  sqlite3_extended_result_codes(raw, 0);
  sqlite3_busy_timeout(raw, busy_ms);
  // synchronous FULL in WAL mode syncs the log at every commit: what was accepted survives a power cut.
  for (const auto* pragma : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA foreign_keys=ON"})
    if (auto status = database.execute(pragma); !status) return status.error();
  return database;
}

base::Expected<Statement> Database::prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql, -1, &statement, nullptr) != SQLITE_OK)
    return failure(database_.get(), "the ledger's database does not understand a statement");
  return Statement(database_.get(), statement);
}

base::Status Database::execute(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return failure(database_.get(), "the ledger's database refused a statement");
  return base::ok();
}

std::int64_t Database::changes() const { return sqlite3_changes(database_.get()); }

base::Expected<Transaction> Transaction::begin(Database& database) {
  if (auto status = database.execute("BEGIN IMMEDIATE"); !status) return status.error();
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  if (database_) static_cast<void>(database_->execute("ROLLBACK"));
}

base::Status Transaction::commit() {
  auto status = database_->execute("COMMIT");
  if (status) database_ = nullptr;
  return status;
}

}  // namespace leafcutter::coordinator
