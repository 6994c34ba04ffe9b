#include "coordinator/campaign/casebook.hpp"

#include <utility>

namespace leafcutter::coordinator {
namespace {

// They stay valid: a casebook keeps its cases' files.
std::vector<Evidence> evidence_of(const Suspect& suspect) {
  std::vector<Evidence> evidence;
  for (const auto& [plan, result] : suspect.explored) evidence.push_back({plan, &result});
  return evidence;
}

}  // namespace

Inquired Casebook::open(const Cases& files) {
  for (const auto& file : files)
    if (!file->suspects.empty()) cases_.try_emplace(file->name, Case{file, {}, false});
  return advance();
}

Inquired Casebook::take(const Result& result) {
  if (!book_.take(result)) return {};
  return advance();
}

// Takes the case as far as it goes; what it came to, once.
std::optional<Conclusion> Casebook::pursue(Case& open) {
  const auto& suspects = open.file->suspects;
  while (!open.concluded) {
    if (open.inquiries.empty() || open.inquiries.back().conclusion()) {
      const auto& suspect = suspects[open.inquiries.size()];
      open.inquiries.emplace_back(suspect.failure, suspect.leaf, evidence_of(suspect));
    }
    const auto& inquiry = open.inquiries.back();
    if (!open.inquiries.back().step(book_)) return std::nullopt;
    open.concluded = inquiry.conclusion()->confirmed || open.inquiries.size() == suspects.size();
    if (!open.concluded) continue;
    // When nothing was confirmed, the first suspect tells the finding.
    return inquiry.conclusion()->confirmed ? inquiry.conclusion() : open.inquiries.front().conclusion();
  }
  return std::nullopt;
}

Inquired Casebook::advance() {
  Inquired out;
  for (auto& [name, open] : cases_)
    if (auto conclusion = pursue(open)) out.concluded.emplace(name, std::move(*conclusion));
  out.orders = book_.orders();
  return out;
}

}  // namespace leafcutter::coordinator
