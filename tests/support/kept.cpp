#include "tests/support/kept.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "base/text.hpp"
#include "tests/support/checkout.hpp"

namespace leafcutter::tests {
namespace {

bool updating() { return std::getenv("LEAFCUTTER_UPDATE") != nullptr; }

}  // namespace

void expect_page(const std::string& name, const std::string& generated) {
  const auto path = checkout() + "/docs/" + name;
  if (updating()) {
    ASSERT_TRUE(base::write_file_atomically(path, generated).ok()) << path;
  }
  const auto stored = base::read_file(path);
  ASSERT_TRUE(stored.ok()) << stored.error().text();
  EXPECT_TRUE(*stored == generated) << path << " is old: run this test with LEAFCUTTER_UPDATE=1";
}

std::vector<BadDocument> bad_documents(const std::string& file) {
  std::vector<BadDocument> cases;
  const auto text = base::read_file(checkout() + "/" + file);
  EXPECT_TRUE(text.ok()) << text.error().text();
  if (!text) return cases;
  std::istringstream lines(*text);
  bool messages = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("=== ")) {
      cases.push_back({line.substr(4), "", ""});
      messages = false;
    } else if (line == "--- messages" && !cases.empty()) {
      messages = true;
    } else if (!cases.empty()) {
      (messages ? cases.back().expected : cases.back().document) += line + "\n";
    }
  }
  return cases;
}

void expect_messages(const std::string& file, const std::function<std::string(const BadDocument&)>& said) {
  std::string rewritten;
  for (const auto& one : bad_documents(file)) {
    const auto messages = said(one);
    rewritten += "=== " + one.name + "\n" + one.document + "--- messages\n" + messages;
    if (!updating()) {
      EXPECT_EQ(messages, one.expected) << one.name << "\n" << one.document;
    }
  }
  if (updating()) {
    ASSERT_TRUE(base::write_file_atomically(checkout() + "/" + file, rewritten).ok());
  }
}

}  // namespace leafcutter::tests
