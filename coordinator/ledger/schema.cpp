#include "coordinator/ledger/schema.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace leafcutter::coordinator {
namespace {

// One entry a version, never changed once released. Columns are what is searched by; the rest is a JSON document.
constexpr std::array migrations = {
    R"sql(
CREATE TABLE campaigns (
  name TEXT PRIMARY KEY, document TEXT NOT NULL, state TEXT NOT NULL, detail TEXT NOT NULL,
  started_unix INTEGER NOT NULL, elapsed_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE epochs (
  campaign TEXT NOT NULL REFERENCES campaigns(name), number INTEGER NOT NULL, document TEXT NOT NULL,
  PRIMARY KEY (campaign, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE results (
  execution TEXT PRIMARY KEY, campaign TEXT NOT NULL REFERENCES campaigns(name), document TEXT NOT NULL
) STRICT;
CREATE INDEX results_of_campaign ON results(campaign);
CREATE TABLE findings (
  campaign TEXT NOT NULL REFERENCES campaigns(name), signature TEXT NOT NULL, document TEXT NOT NULL,
  PRIMARY KEY (campaign, signature)
) STRICT, WITHOUT ROWID;
)sql",
};

base::Expected<std::int64_t> version_of(Database& database) {
  auto statement = database.prepare("PRAGMA user_version");
  if (!statement) return statement.error();
  auto row = statement->step();
  if (!row) return row.error();
  return *row ? statement->number(0) : 0;
}

}  // namespace

base::Status migrate(Database& database) {
  auto version = version_of(database);
  if (!version) return version.error();
  const auto newest = static_cast<std::int64_t>(migrations.size());
  if (*version > newest || *version < 0)
    return base::Error{base::ErrorCode::bad_input,
                       "the ledger has schema " + std::to_string(*version) + ", this program knows schemas up to " +
                           std::to_string(newest) + "; use a newer leafcutter or another folder",
                       {}};
  for (auto next = *version; next < newest; ++next) {
    auto transaction = Transaction::begin(database);
    if (!transaction) return transaction.error();
    if (auto status = database.execute(migrations[static_cast<std::size_t>(next)]); !status) return status;
    const auto stamp = "PRAGMA user_version=" + std::to_string(next + 1);
    if (auto status = database.execute(stamp.c_str()); !status) return status;
    if (auto status = transaction->commit(); !status) return status;
  }
  return base::ok();
}

}  // namespace leafcutter::coordinator
