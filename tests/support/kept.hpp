// Texts that are kept in the checkout and must be what the program says now: generated pages of docs/, and documents
// with mistakes beside what is said of them. LEAFCUTTER_UPDATE=1 writes what is said now; read the difference before
// you keep it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace leafcutter::tests {

/// `docs/<name>` holds exactly that.
void expect_page(const std::string& name, const std::string& generated);

struct BadDocument {
  std::string name, document, expected;
};

/// Of a file of the checkout: "=== name", the document, "--- messages", the messages.
std::vector<BadDocument> bad_documents(const std::string& file);

/// The file's documents have exactly their messages, as `said` gives them, a line each.
void expect_messages(const std::string& file, const std::function<std::string(const BadDocument&)>& said);

}  // namespace leafcutter::tests
