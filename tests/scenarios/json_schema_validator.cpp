#include "json_schema_validator.hpp"

#include <algorithm>
#include <set>

#include "scenarios/regex.hpp"

namespace leafcutter::scenarios::testing {
namespace {

using protocols::Value;

class Validator {
 public:
  explicit Validator(const Value& root) : root_(root) {}

  std::vector<std::string> errors;

  void check(const Value& schema, const Value& value, const std::string& at) {
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) errors.push_back(at + ": not allowed");
      return;
    }
    static const std::set<std::string> known = {"$ref",
                                                "$defs",
                                                "$schema",
                                                "title",
                                                "description",
                                                "type",
                                                "properties",
                                                "additionalProperties",
                                                "required",
                                                "items",
                                                "minItems",
                                                "maxItems",
                                                "minProperties",
                                                "propertyNames",
                                                "enum",
                                                "pattern",
                                                "minLength",
                                                "minimum",
                                                "maximum",
                                                "oneOf",
                                                "anyOf",
                                                "dependentSchemas",
                                                "exclusiveMinimum"};
    for (const auto& [keyword, unused] : schema.items())
      if (known.count(keyword) == 0) errors.push_back("the schema uses \"" + keyword + "\", which is not checked here");
    if (schema.contains("$ref"))
      check(root_.at(Value::json_pointer(schema["$ref"].get<std::string>().substr(1))), value, at);
    if (schema.contains("type") && !has_type(schema["type"], value)) return errors.push_back(at + ": wrong type");
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
      errors.push_back(at + ": not in enum");
    if (value.is_string()) check_text(schema, value.get<std::string>(), at);
    if (value.is_number()) {
      if (schema.contains("minimum") && value.get<double>() < schema["minimum"].get<double>())
        errors.push_back(at + ": too small");
      if (schema.contains("exclusiveMinimum") && value.get<double>() <= schema["exclusiveMinimum"].get<double>())
        errors.push_back(at + ": too small");
      if (schema.contains("maximum") && value.get<double>() > schema["maximum"].get<double>())
        errors.push_back(at + ": too large");
    }
    if (value.is_array()) check_array(schema, value, at);
    if (value.is_object()) check_object(schema, value, at);
    if (schema.contains("anyOf") && count_valid(schema["anyOf"], value) == 0) errors.push_back(at + ": none of anyOf");
    if (schema.contains("oneOf") && count_valid(schema["oneOf"], value) != 1)
      errors.push_back(at + ": not exactly one of oneOf");
  }

 private:
  static bool has_type(const Value& types, const Value& value) {
    if (types.is_array())
      return std::any_of(types.begin(), types.end(), [&](const Value& one) { return has_type(one, value); });
    const auto& type = types.get_ref<const std::string&>();
    return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
           (type == "string" && value.is_string()) || (type == "integer" && value.is_number_integer()) ||
           (type == "number" && value.is_number()) || (type == "boolean" && value.is_boolean()) ||
           (type == "null" && value.is_null());
  }

  void check_text(const Value& schema, const std::string& text, const std::string& at) {
    if (schema.contains("pattern") && !regex_search(schema["pattern"].get<std::string>(), text))
      errors.push_back(at + ": does not match the pattern");
    if (schema.contains("minLength") && text.size() < schema["minLength"].get<std::size_t>())
      errors.push_back(at + ": too short");
  }

  void check_array(const Value& schema, const Value& value, const std::string& at) {
    if (schema.contains("minItems") && value.size() < schema["minItems"].get<std::size_t>())
      errors.push_back(at + ": too few items");
    if (schema.contains("maxItems") && value.size() > schema["maxItems"].get<std::size_t>())
      errors.push_back(at + ": too many items");
    for (std::size_t i = 0; schema.contains("items") && i < value.size(); ++i)
      check(schema["items"], value[i], at + "/" + std::to_string(i));
  }

  void check_object(const Value& schema, const Value& value, const std::string& at) {
    if (schema.contains("minProperties") && value.size() < schema["minProperties"].get<std::size_t>())
      errors.push_back(at + ": too few properties");
    if (schema.contains("required"))
      for (const auto& key : schema["required"])
        if (!value.contains(key.get<std::string>())) errors.push_back(at + ": lacks " + key.dump());
    for (const auto& [key, element] : value.items()) {
      const bool listed = schema.contains("properties") && schema["properties"].contains(key);
      if (listed) check(schema["properties"][key], element, at + "/" + key);
      if (!listed && schema.contains("additionalProperties"))
        check(schema["additionalProperties"], element, at + "/" + key);
      if (schema.contains("propertyNames")) check(schema["propertyNames"], key, at + "/" + key + " (name)");
      if (schema.contains("dependentSchemas") && schema["dependentSchemas"].contains(key))
        check(schema["dependentSchemas"][key], value, at);
    }
  }

  std::size_t count_valid(const Value& schemas, const Value& value) const {
    return static_cast<std::size_t>(std::count_if(schemas.begin(), schemas.end(), [&](const Value& one) {
      Validator inner(root_);
      inner.check(one, value, "");
      return inner.errors.empty();
    }));
  }

  const Value& root_;
};

}  // namespace

std::vector<std::string> validate(const Value& schema, const Value& value) {
  Validator validator(schema);
  validator.check(schema, value, "");
  return validator.errors;
}

}  // namespace leafcutter::scenarios::testing
