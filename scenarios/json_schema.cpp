#include "scenarios/json_schema.hpp"

#include <limits>

#include "scenarios/loader.hpp"

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

Value number_schema(const Form& form) {
  Value out = {{"type", "number"}};
  out[form.above ? "exclusiveMinimum" : "minimum"] = form.from;
  if (form.to < std::numeric_limits<double>::max()) out["maximum"] = form.to;
  return out;
}

/// The names of shapes that are referred to begin with `prefix`.
Value schema_of(const Form& form, const std::string& prefix);

Value list_of_schemas(const std::vector<Form>& forms, const std::string& prefix) {
  Value parts = Value::array();
  for (const auto& form : forms) parts.push_back(schema_of(form, prefix));
  return parts;
}

Value schema_of_value(const Form& form, const std::string& prefix) {
  switch (form.kind) {
    case Kind::text:
      if (form.least > 0) return {{"type", text_types()}, {"minLength", form.least}};
      return {{"type", text_types()}};
    case Kind::name: return {{"type", "string"}, {"pattern", name_pattern}};
    case Kind::variable: return {{"type", "string"}, {"pattern", variable_pattern}};
    case Kind::integer: return {{"type", "integer"}, {"minimum", form.least}, {"maximum", form.most}};
    case Kind::number: return number_schema(form);
    case Kind::pattern: return {{"type", "string"}, {"pattern", form.words.front()}};
    case Kind::boolean: return {{"type", "boolean"}};
    case Kind::duration: return {{"type", "string"}, {"pattern", "^[0-9]+(ns|us|ms|s|m|h)$"}};
    case Kind::regex:
    case Kind::lua: return {{"type", text_types()}};
    case Kind::word: return {{"enum", form.words}};
    case Kind::any: return true;
    case Kind::matchers: return {{"type", "object"}};
    case Kind::list:
      return {{"type", "array"},
              {"items", schema_of(form.parts[0], prefix)},
              {"minItems", form.least},
              {"maxItems", form.most}};
    case Kind::map: {
      Value names = {{"minLength", 1}};
      if (form.keys != Kind::text) names = {{"pattern", form.keys == Kind::variable ? variable_pattern : name_pattern}};
      return {{"type", "object"},
              {"propertyNames", names},
              {"additionalProperties", schema_of(form.parts[0], prefix)},
              {"minProperties", form.least}};
    }
    case Kind::shape: return {{"$ref", "#/$defs/" + prefix + reference_to(form.noun)}};
    case Kind::either: return {{"anyOf", list_of_schemas(form.parts, prefix)}};
    case Kind::tagged: return {{"oneOf", list_of_schemas(form.parts, prefix)}};
  }
  return true;
}

Value schema_of(const Form& form, const std::string& prefix) {
  if (!form.nullable) return schema_of_value(form, prefix);
  Value both = Value::array({schema_of_value(form, prefix)});
  both.push_back({{"type", "null"}});
  return {{"anyOf", std::move(both)}};
}

Value any_required(const std::vector<std::string>& keys) {
  Value list = Value::array();
  for (const auto& key : keys) list.push_back({{"required", Value::array({key})}});
  return list;
}

Value schema_of(const Shape& shape, const std::string& prefix) {
  Value properties = Value::object();
  Value required = Value::array();
  Value dependent = Value::object();
  for (const auto& key : shape.keys) {
    auto schema = schema_of(key.form, prefix);
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

Value document_schema(const Vocabulary& vocabulary, const std::string& prefix) {
  return schema_of(vocabulary.shapes.front(), prefix);
}

Value definitions_schema(const Vocabulary& vocabulary, const std::string& prefix) {
  Value definitions = Value::object();
  for (std::size_t i = 1; i < vocabulary.shapes.size(); ++i)
    definitions[prefix + reference_to(vocabulary.shapes[i].name)] = schema_of(vocabulary.shapes[i], prefix);
  return definitions;
}

Value json_schema() {
  auto out = document_schema(vocabulary(), "");
  out["$schema"] = schema_dialect;
  out["title"] = "Leafcutter scenario, version " + std::to_string(language_version);
  out["$defs"] = definitions_schema(vocabulary(), "");
  return out;
}

}  // namespace leafcutter::scenarios
