// The table of keys as JSON Schema, draft 2020-12, for editors.
#include "scenarios/loader.hpp"
#include "scenarios/schema.hpp"

namespace leafcutter::scenarios {
namespace {

using Kind = Form::Kind;

/// Text may be written without quotes, so a number is text, too.
Value text_types() { return Value::array({"string", "number", "boolean"}); }

std::string reference_to(std::string name) {
  for (auto& c : name)
    if (c == ' ') c = '-';
  return name;
}

Value schema_of(const Form& form) {
  switch (form.kind) {
    case Kind::text:
      if (form.least > 0) return {{"type", text_types()}, {"minLength", form.least}};
      return {{"type", text_types()}};
    case Kind::name: return {{"type", "string"}, {"pattern", name_pattern}};
    case Kind::variable: return {{"type", "string"}, {"pattern", variable_pattern}};
    case Kind::integer: return {{"type", "integer"}, {"minimum", form.least}, {"maximum", form.most}};
    case Kind::boolean: return {{"type", "boolean"}};
    case Kind::duration: return {{"type", "string"}, {"pattern", "^[0-9]+(ns|us|ms|s|m|h)$"}};
    case Kind::regex:
    case Kind::lua: return {{"type", text_types()}};
    case Kind::word: return {{"enum", form.words}};
    case Kind::any: return true;
    case Kind::matchers: return {{"type", "object"}};
    case Kind::list:
      return {
          {"type", "array"}, {"items", schema_of(form.parts[0])}, {"minItems", form.least}, {"maxItems", form.most}};
    case Kind::map: {
      Value names = {{"minLength", 1}};
      if (form.keys != Kind::text) names = {{"pattern", form.keys == Kind::variable ? variable_pattern : name_pattern}};
      return {{"type", "object"},
              {"propertyNames", names},
              {"additionalProperties", schema_of(form.parts[0])},
              {"minProperties", form.least}};
    }
    case Kind::shape: return {{"$ref", "#/$defs/" + reference_to(form.noun)}};
    case Kind::either: {
      Value parts = Value::array();
      for (const auto& part : form.parts) parts.push_back(schema_of(part));
      return {{"anyOf", parts}};
    }
  }
  return true;
}

Value any_required(const std::vector<std::string>& keys) {
  Value list = Value::array();
  for (const auto& key : keys) list.push_back({{"required", Value::array({key})}});
  return list;
}

Value schema_of(const Shape& shape) {
  Value properties = Value::object();
  Value required = Value::array();
  Value dependent = Value::object();
  for (const auto& key : shape.keys) {
    auto schema = schema_of(key.form);
    if (schema.is_boolean()) schema = Value::object();
    schema["description"] = key.about + (key.preset.empty() ? "" : " (default: " + key.preset + ")");
    properties[key.name] = std::move(schema);
    if (key.required) required.push_back(key.name);
    if (!key.only_with.empty()) dependent[key.name] = {{"anyOf", any_required(key.only_with)}};
  }
  Value out = {{"type", "object"}, {"properties", properties}, {"additionalProperties", !shape.others.empty()}};
  if (!shape.about.empty()) out["description"] = shape.about;
  if (!required.empty()) out["required"] = required;
  if (!dependent.empty()) out["dependentSchemas"] = dependent;
  if (!shape.one_of.empty()) out["oneOf"] = any_required(shape.one_of);
  if (!shape.some_of.empty()) out["anyOf"] = any_required(shape.some_of);
  return out;
}

}  // namespace

Value json_schema() {
  auto out = schema_of(shapes().front());
  out["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  out["title"] = "Leafcutter scenario, version " + std::to_string(language_version);
  Value definitions = Value::object();
  for (std::size_t i = 1; i < shapes().size(); ++i)
    definitions[reference_to(shapes()[i].name)] = schema_of(shapes()[i]);
  out["$defs"] = definitions;
  return out;
}

}  // namespace leafcutter::scenarios
