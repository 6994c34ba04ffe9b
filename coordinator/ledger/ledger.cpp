#include "coordinator/ledger/ledger.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/digest.hpp"
#include "base/folder_lock.hpp"
#include "base/text.hpp"
#include "coordinator/ledger/blobs.hpp"
#include "coordinator/ledger/result_codec.hpp"
#include "coordinator/ledger/schema.hpp"
#include "coordinator/ledger/sqlite.hpp"

namespace leafcutter::coordinator {

using base::Error;
using base::ErrorCode;
using base::Status;

struct Ledger::State {
  std::mutex mutex;  // a transaction belongs to one caller
  std::string folder;
  base::FolderLock lock;  // before the database: it goes last
  Database database;
  Blobs blobs;

  std::string campaign_folder(const std::string& name) const { return folder + "/campaigns/" + name; }

  /// Writes `folder`/campaigns/<name>/<file>.
  Status write_beside(const std::string& campaign, const std::string& file, const Value& value) const {
    const auto to = campaign_folder(campaign);
    if (auto status = make_folders(to); !status) return status;
    if (auto status = base::write_file_atomically(to + "/" + file, dump(value) + "\n"); !status) return status;
    return sync_folder(to);
  }

  /// Documents of one campaign, in the order the statement gives.
  template <class Use>
  Status each(const char* sql, const std::string& campaign, Use use) {
    auto statement = database.prepare(sql);
    if (!statement) return statement.error();
    statement->bind(campaign);
    for (;;) {
      auto row = statement->step();
      if (!row) return row.error();
      if (!*row) return base::ok();
      if (Status status = use(*statement); !status) return status;
    }
  }

  base::Expected<bool> known(const std::string& campaign) {
    bool found = false;
    auto status = each("SELECT 1 FROM campaigns WHERE name=?", campaign, [&](Statement&) {
      found = true;
      return base::ok();
    });
    if (!status) return status.error();
    return found;
  }

  Status require(const std::string& campaign) {
    auto there = known(campaign);
    if (!there) return there.error();
    if (*there) return base::ok();
    return Error{
        ErrorCode::bad_input, "the ledger knows no campaign \"" + campaign + "\"; save_campaign comes first", {}};
  }
};

namespace {

base::Expected<Value> parse_document(const std::string& what, const std::string& text) {
  auto value = Value::parse(text, nullptr, false);
  if (value.is_discarded())
    return Error{ErrorCode::io, "the ledger holds a damaged record: " + what + " is not JSON", {}};
  return value;
}

/// A name that becomes a folder's: no separators, no dots, not empty.
Status check_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  });
  if (good) return base::ok();
  return Error{ErrorCode::bad_input, "\"" + name + "\" cannot name a campaign: expected letters, digits, - and _", {}};
}

base::Expected<CampaignRow> row_of(Statement& statement) {
  auto value = parse_document("campaign", statement.text(0));
  if (!value) return value.error();
  auto row = campaign_row_from(*value);
  if (!row) return row;
  row->state = statement.text(1);
  row->detail = statement.text(2);
  row->started_unix = statement.number(3);
  row->elapsed_ms = statement.number(4);
  return row;
}

}  // namespace

Ledger::Ledger(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ledger::~Ledger() = default;

base::Expected<std::unique_ptr<Ledger>> Ledger::open(const std::string& folder) {
  if (auto status = make_folders(folder + "/blobs"); !status) return status.error();
  auto lock = base::FolderLock::take(folder);
  if (!lock) return lock.error();
  auto database = Database::open(folder + "/ledger.db");
  if (!database) return database.error();
  if (auto status = migrate(*database); !status) return status.error();
  if (auto status = sync_folder(folder); !status) return status.error();
  std::unique_ptr<State> state(new State{{}, folder, std::move(*lock), std::move(*database), Blobs(folder + "/blobs")});
  return std::unique_ptr<Ledger>(new Ledger(std::move(state)));
}

Status Ledger::save_campaign(const CampaignRow& row) {
  if (auto status = check_name(row.name); !status) return status;
  const std::lock_guard guard(state_->mutex);
  // The file first: a row without its file could not be replayed elsewhere.
  if (auto status = state_->write_beside(row.name, "campaign.json", to_value(row)); !status) return status;
  auto statement = state_->database.prepare(
      "INSERT INTO campaigns(name, document, state, detail, started_unix, elapsed_ms) VALUES(?,?,?,?,?,?) ON "
      "CONFLICT(name) "
      "DO UPDATE SET document=excluded.document, state=excluded.state, detail=excluded.detail, "
      "started_unix=excluded.started_unix, elapsed_ms=excluded.elapsed_ms");
  if (!statement) return statement.error();
  statement->bind(row.name).bind(dump(to_value(row))).bind(row.state).bind(row.detail);
  return statement->bind(row.started_unix).bind(row.elapsed_ms).run();
}

base::Expected<std::optional<CampaignRow>> Ledger::campaign(const std::string& name) {
  const std::lock_guard guard(state_->mutex);
  std::optional<CampaignRow> found;
  auto status = state_->each("SELECT document, state, detail, started_unix, elapsed_ms FROM campaigns WHERE name=?",
                             name, [&](Statement& statement) -> Status {
                               auto row = row_of(statement);
                               if (!row) return row.error();
                               found = std::move(*row);
                               return base::ok();
                             });
  if (!status) return status.error();
  return found;
}

base::Expected<std::vector<CampaignRow>> Ledger::campaigns() {
  const std::lock_guard guard(state_->mutex);
  auto statement = state_->database.prepare(
      "SELECT document, state, detail, started_unix, elapsed_ms FROM campaigns ORDER BY started_unix, name");
  if (!statement) return statement.error();
  std::vector<CampaignRow> rows;
  for (;;) {
    auto more = statement->step();
    if (!more) return more.error();
    if (!*more) return rows;
    auto row = row_of(*statement);
    if (!row) return row.error();
    rows.push_back(std::move(*row));
  }
}

Status Ledger::erase(const std::string& campaign) {
  if (auto status = check_name(campaign); !status) return status;
  const std::lock_guard guard(state_->mutex);
  auto headers = std::vector<std::int64_t>();
  auto listed = state_->each("SELECT number FROM epochs WHERE campaign=?", campaign, [&](Statement& statement) {
    headers.push_back(statement.number(0));
    return base::ok();
  });
  if (!listed) return listed;
  auto transaction = Transaction::begin(state_->database);
  if (!transaction) return transaction.error();
  for (const auto* sql : {"DELETE FROM findings WHERE campaign=?", "DELETE FROM results WHERE campaign=?",
                          "DELETE FROM epochs WHERE campaign=?"}) {
    auto statement = state_->database.prepare(sql);
    if (!statement) return statement.error();
    if (auto status = statement->bind(campaign).run(); !status) return status;
  }
  if (auto status = transaction->commit(); !status) return status;
  for (const auto number : headers)
    ::unlink((state_->campaign_folder(campaign) + "/epoch-" + std::to_string(number) + ".json").c_str());
  return base::ok();
}

Status Ledger::save_epoch(const EpochHeader& header) {
  if (auto status = check_name(header.campaign); !status) return status;
  const std::lock_guard guard(state_->mutex);
  if (auto status = state_->require(header.campaign); !status) return status;
  const auto value = coordinator::to_value(header);
  const auto file = "epoch-" + std::to_string(header.number) + ".json";
  if (auto status = state_->write_beside(header.campaign, file, value); !status) return status;
  auto statement = state_->database.prepare(
      "INSERT INTO epochs(campaign, number, document) VALUES(?,?,?) ON CONFLICT(campaign, number) DO UPDATE SET "
      "document=excluded.document");
  if (!statement) return statement.error();
  return statement->bind(header.campaign).bind(static_cast<std::int64_t>(header.number)).bind(dump(value)).run();
}

base::Expected<std::vector<EpochHeader>> Ledger::epochs(const std::string& campaign) {
  const std::lock_guard guard(state_->mutex);
  std::vector<EpochHeader> headers;
  auto status = state_->each("SELECT document FROM epochs WHERE campaign=? ORDER BY number", campaign,
                             [&](Statement& statement) -> Status {
                               auto value = parse_document("epoch header", statement.text(0));
                               if (!value) return value.error();
                               auto header = epoch_header_from(*value);
                               if (!header) return header.error();
                               headers.push_back(std::move(*header));
                               return base::ok();
                             });
  if (!status) return status.error();
  return headers;
}

base::Expected<bool> Ledger::accept(const std::string& campaign, const Result& result) {
  const std::lock_guard guard(state_->mutex);
  if (auto status = state_->require(campaign); !status) return status.error();
  auto transaction = Transaction::begin(state_->database);
  if (!transaction) return transaction.error();
  bool fresh = false;
  {
    auto statement = state_->database.prepare(
        "INSERT INTO results(execution, campaign, document) VALUES(?,?,?) ON CONFLICT(execution) DO NOTHING");
    if (!statement) return statement.error();
    if (auto status = statement->bind(result.execution).bind(campaign).bind(dump(to_value(result))).run(); !status)
      return status.error();
    fresh = state_->database.changes() > 0;
  }
  if (auto status = transaction->commit(); !status) return status.error();
  return fresh;
}

base::Expected<std::vector<Result>> Ledger::results(const std::string& campaign) {
  const std::lock_guard guard(state_->mutex);
  std::vector<Result> results;
  auto status = state_->each("SELECT execution, document FROM results WHERE campaign=? ORDER BY rowid", campaign,
                             [&](Statement& statement) -> Status {
                               auto value = parse_document("result", statement.text(1));
                               if (!value) return value.error();
                               auto read = result_from(statement.text(0), *value);
                               if (!read) return read.error();
                               results.push_back(std::move(*read));
                               return base::ok();
                             });
  if (!status) return status.error();
  return results;
}

base::Expected<std::optional<Result>> Ledger::result(const std::string& execution) {
  const std::lock_guard guard(state_->mutex);
  std::optional<Result> found;
  auto status =
      state_->each("SELECT document FROM results WHERE execution=?", execution, [&](Statement& statement) -> Status {
        auto value = parse_document("result", statement.text(0));
        if (!value) return value.error();
        auto read = result_from(execution, *value);
        if (!read) return read.error();
        found = std::move(*read);
        return base::ok();
      });
  if (!status) return status.error();
  return found;
}

Status Ledger::save_finding(const std::string& campaign, const Finding& finding) {
  const std::lock_guard guard(state_->mutex);
  if (auto status = state_->require(campaign); !status) return status;
  auto statement = state_->database.prepare(
      "INSERT INTO findings(campaign, signature, document) VALUES(?,?,?) ON CONFLICT(campaign, signature) DO UPDATE "
      "SET document=excluded.document");
  if (!statement) return statement.error();
  return statement->bind(campaign).bind(finding.signature).bind(dump(coordinator::to_value(finding))).run();
}

base::Expected<std::vector<Finding>> Ledger::findings(const std::string& campaign) {
  const std::lock_guard guard(state_->mutex);
  std::vector<Finding> findings;
  auto status = state_->each("SELECT document FROM findings WHERE campaign=? ORDER BY signature", campaign,
                             [&](Statement& statement) -> Status {
                               auto value = parse_document("finding", statement.text(0));
                               if (!value) return value.error();
                               auto read = finding_from(*value);
                               if (!read) return read.error();
                               findings.push_back(std::move(*read));
                               return base::ok();
                             });
  if (!status) return status.error();
  // In the order of the leaves that showed them.
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.leaf < b.leaf; });
  return findings;
}

base::Expected<std::string> Ledger::store_blob(std::string_view bytes) {
  const std::lock_guard guard(state_->mutex);  // two campaigns may store the same bytes
  return state_->blobs.store(bytes);
}
base::Expected<std::string> Ledger::load_blob(const std::string& digest) { return state_->blobs.load(digest); }

std::vector<Result> explored_leaves(const std::vector<Result>& results) {
  using Rank = std::tuple<bool, std::int64_t>;
  std::map<scenarios::Address, std::pair<Rank, const Result*>> best;
  for (const auto& result : results) {
    if (result.purpose != Purpose::explore) continue;
    const auto address = scenarios::parse_address(result.address);
    if (!address) continue;
    const auto mark = result.execution.rfind('#');
    const std::int64_t attempt =
        mark == std::string::npos ? 0 : std::strtoll(result.execution.c_str() + mark + 1, nullptr, 10);
    // Only infrastructure trouble is tried again: what was decided first stands, else the last trouble.
    const bool decided = result.verdict != scenarios::Verdict::infra;
    const Rank rank{decided, decided ? -attempt : attempt};
    const auto [entry, fresh] = best.emplace(*address, std::pair{rank, &result});
    if (!fresh && rank > entry->second.first) entry->second = {rank, &result};
  }
  std::vector<Result> leaves;
  leaves.reserve(best.size());
  for (const auto& [address, entry] : best) leaves.push_back(*entry.second);
  return leaves;
}

std::string result_digest(const std::vector<Result>& results) {
  std::string text;
  for (const auto& leaf : explored_leaves(results))
    text += leaf.address + " " + std::string(scenarios::name(leaf.verdict)) + " " +
            std::string(scenarios::name(leaf.reason)) + "\n";
  return base::sha256(text);
}

}  // namespace leafcutter::coordinator
