#include "coordinator/finding.hpp"

#include <type_traits>

namespace leafcutter::coordinator {
namespace {

/// Reads fields of one object and remembers the first that is missing or of another type.
class Fields {
 public:
  explicit Fields(const Value& object) : object_(object) {
    if (!object.is_object()) wrong_ = "a finding is an object";
  }

  void read(const char* name, std::string& out) {
    if (const auto* value = field(name, &Value::is_string)) out = value->get<std::string>();
  }
  void read(const char* name, bool& out) {
    if (const auto* value = field(name, &Value::is_boolean)) out = value->get<bool>();
  }
  template <class Number>
  requires(std::is_unsigned_v<Number> && !std::is_same_v<Number, bool>) void read(const char* name, Number& out) {
    const auto* value = field(name, &Value::is_number_integer);
    if (!value) return;
    if (*value < 0)
      wrong(name);
    else
      out = value->get<Number>();
  }
  void read(const char* name, std::vector<std::string>& out) {
    const auto* value = field(name, &Value::is_array);
    if (!value) return;
    out.clear();
    for (const auto& entry : *value) {
      if (!entry.is_string()) return wrong(name);
      out.push_back(entry.get<std::string>());
    }
  }
  const Value* object(const char* name) { return field(name, &Value::is_object); }

  const std::string& error() const { return wrong_; }
  void wrong(const char* name) {
    if (wrong_.empty()) wrong_ = std::string("a finding's field \"") + name + "\" is missing or of another type";
  }

 private:
  const Value* field(const char* name, bool (Value::*is)() const noexcept) {
    if (!wrong_.empty()) return nullptr;
    const auto found = object_.find(name);
    if (found != object_.end() && ((*found).*is)()) return &*found;
    wrong(name);
    return nullptr;
  }

  const Value& object_;
  std::string wrong_;
};

}  // namespace

Value to_value(const Finding& finding) {
  return {{"signature", finding.signature},
          {"property", finding.property},
          {"message", finding.message},
          {"leaf", finding.leaf.text()},
          {"exemplars", finding.exemplars},
          {"seen", finding.seen},
          {"plan", scenarios::to_value(finding.plan)},
          {"one_minimal", finding.one_minimal},
          {"runs", finding.runs},
          {"fails", finding.fails},
          {"control_passed", finding.control_passed},
          {"confirmed", finding.confirmed},
          {"failing_execution", finding.failing_execution},
          {"passing_execution", finding.passing_execution},
          {"explanation", finding.explanation}};
}

base::Expected<Finding> finding_from(const Value& value) {
  Finding finding;
  Fields fields(value);
  std::string leaf;
  fields.read("signature", finding.signature);
  fields.read("property", finding.property);
  fields.read("message", finding.message);
  fields.read("leaf", leaf);
  fields.read("exemplars", finding.exemplars);
  fields.read("seen", finding.seen);
  fields.read("one_minimal", finding.one_minimal);
  fields.read("runs", finding.runs);
  fields.read("fails", finding.fails);
  fields.read("control_passed", finding.control_passed);
  fields.read("confirmed", finding.confirmed);
  fields.read("failing_execution", finding.failing_execution);
  fields.read("passing_execution", finding.passing_execution);
  fields.read("explanation", finding.explanation);
  const auto* plan = fields.object("plan");
  if (!fields.error().empty()) return base::Error{base::ErrorCode::bad_input, fields.error(), {}};
  auto read_plan = scenarios::plan_from(*plan);
  if (!read_plan) return read_plan.error();
  finding.plan = std::move(*read_plan);
  auto address = scenarios::parse_address(leaf);
  if (!address) return address.error();
  finding.leaf = std::move(*address);
  return finding;
}

}  // namespace leafcutter::coordinator
