#include "generate/json_schema.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "base/error.h"
#include "generate/json_rules.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;
using Symbol = Grammar::Symbol;
using Symbols = Grammar::Sequence;

constexpr int kMostDepth = 64;
constexpr int64_t kMostRepeats = 100'000;
constexpr size_t kMostProperties = 2000;

// Keywords that tell a reader something and restrict nothing; "format" is among them by default
// (JSON Schema 2020-12, 7.2.1).
const std::set<std::string> kNotes = {"title",       "description", "default",  "examples",
                                      "$schema",     "$id",         "$comment", "$defs",
                                      "definitions", "deprecated",  "readOnly", "writeOnly",
                                      "format",      "strict",      "nullable", "discriminator"};
const std::map<std::string, std::set<std::string>> kKeywords = {
    {"object", {"properties", "required", "additionalProperties"}},
    {"array", {"items", "prefixItems", "minItems", "maxItems"}},
    {"string", {"minLength", "maxLength"}},
    {"number", {}},
    {"integer", {}},
    {"boolean", {}},
    {"null", {}}};

Json parse(std::string_view text) {
  const auto guard = [](int depth, Json::parse_event_t, Json&) {
    check(depth <= kMostDepth, "schema: nested more than {} deep; expected less", kMostDepth);
    return true;
  };
  try {
    return Json::parse(text, guard);
  } catch (const Json::exception&) {
    fail(ErrorKind::InvalidArgument, "schema: not JSON; expected a JSON Schema");
  }
}

bool has_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  return value.is_null();
}

class SchemaCompiler {
 public:
  SchemaCompiler(Grammar& grammar, Json schema)
      : grammar_(grammar), rules_(grammar), schema_(std::move(schema)) {}

  Symbol root() { return compile(schema_, "schema"); }
  JsonRules& rules() { return rules_; }

 private:
  [[noreturn]] static void refuse(const std::string& path, const std::string& why) {
    fail(ErrorKind::InvalidArgument, "{}: {}", path, why);
  }

  // A rule for the values of one schema; `path` is its place, for errors.
  Symbol compile(const Json& schema, const std::string& path) {
    if (schema.is_boolean() && schema.get<bool>()) return rules_.value();
    if (!schema.is_object())
      refuse(path, "is no schema that a value satisfies; expected an object");
    if (schema.contains("$ref")) return alone(schema, "$ref", path), reference(schema, path);
    for (const char* const key : {"anyOf", "oneOf", "allOf"}) {
      if (schema.contains(key)) return alone(schema, key, path), choice(schema, key, path);
    }
    if (schema.contains("enum") || schema.contains("const")) return literals(schema, path);
    std::vector<Symbols> ways;
    const std::vector<std::string> types = types_of(schema, path);
    refuse_others(schema, path);
    for (const std::string& type : types) ways.push_back(of_type(schema, type, path));
    return ways.empty() ? rules_.value() : rules_.one_of(ways);
  }

  // Beside `key` there is nothing that restricts.
  static void alone(const Json& schema, const std::string& key, const std::string& path) {
    for (const auto& [other, value] : schema.items()) {
      const bool type_of_all = other == "type" && key != "$ref" && value == "object";
      if (other != key && !kNotes.contains(other) && !type_of_all) {
        fail(ErrorKind::Unsupported, "{}: {} beside {}; expected it alone", path, other, key);
      }
    }
  }

  Symbol choice(const Json& schema, const std::string& key, const std::string& path) {
    const Json& all = schema[key];
    if (!all.is_array() || all.empty()) refuse(path + "." + key, "expected schemas in an array");
    if (key == "allOf" && all.size() > 1) {
      fail(ErrorKind::Unsupported, "{}: allOf of several schemas; expected one", path);
    }
    std::vector<Symbols> ways;
    for (const Json& each : all) ways.push_back({compile(each, path + "." + key)});
    return rules_.one_of(ways);
  }

  Symbol reference(const Json& schema, const std::string& path) {
    const Json& target = schema["$ref"];
    if (!target.is_string()) refuse(path, "$ref is no string; expected \"#/$defs/NAME\"");
    const std::string pointer = target.get<std::string>();
    if (const auto found = references_.find(pointer); found != references_.end()) {
      return found->second;
    }
    if (pointer.empty() || pointer[0] != '#') {
      refuse(path, "$ref leads out of the schema; expected \"#/$defs/NAME\"");
    }
    const Symbol rule = Grammar::call(grammar_.add_rule());
    references_.emplace(pointer, rule);
    grammar_.add(rule.index, {compile(at(pointer, path), pointer)});
    return rule;
  }

  const Json& at(const std::string& pointer, const std::string& path) const {
    try {
      return schema_.at(Json::json_pointer(pointer.substr(1)));
    } catch (const Json::exception&) {
      refuse(path, "$ref leads to nothing in the schema; expected \"#/$defs/NAME\"");
    }
  }

  Symbol literals(const Json& schema, const std::string& path) {
    const Json all = schema.contains("enum") ? schema["enum"] : Json::array({schema["const"]});
    if (!all.is_array() || all.empty()) refuse(path, "enum is empty; expected an array of values");
    const bool typed = schema.contains("type");
    const std::vector<std::string> types =
        typed ? types_of(schema, path) : std::vector<std::string>();
    std::vector<Symbols> ways;
    for (const Json& value : all) {
      const bool fits = std::any_of(types.begin(), types.end(),
                                    [&](const std::string& type) { return has_type(value, type); });
      const bool const_fits = !schema.contains("const") || value == schema["const"];
      if ((fits || !typed) && const_fits) ways.push_back(rules_.text(value.dump()));
    }
    if (ways.empty()) refuse(path, "no value of enum fits; expected one");
    return rules_.one_of(ways);
  }

  // What `type` says, or else what the keywords are about; empty for anything at all.
  static std::vector<std::string> types_of(const Json& schema, const std::string& path) {
    std::vector<std::string> types;
    if (!schema.contains("type")) {
      for (const auto& [type, keywords] : kKeywords) {
        const bool meant =
            std::any_of(keywords.begin(), keywords.end(),
                        [&](const std::string& key) { return schema.contains(key); });
        if (meant) types.push_back(type);
      }
      return types;
    }
    const Json& given = schema["type"];
    for (const Json& type : given.is_array() ? given : Json::array({given})) {
      if (!type.is_string() || !kKeywords.contains(type.get<std::string>())) {
        refuse(path,
               "type is unknown; expected object, array, string, number, integer, boolean "
               "or null");
      }
      types.push_back(type.get<std::string>());
    }
    if (types.empty()) refuse(path, "type is empty; expected one");
    return types;
  }

  static void refuse_others(const Json& schema, const std::string& path) {
    for (const auto& [key, value] : schema.items()) {
      if (key == "type" || kNotes.contains(key)) continue;
      bool known = false;
      for (const auto& [type, keywords] : kKeywords) known |= keywords.contains(key);
      if (!known) {
        fail(ErrorKind::Unsupported, "{}: the keyword {} is not supported; expected others", path,
             key);
      }
    }
  }

  Symbols of_type(const Json& schema, const std::string& type, const std::string& path) {
    if (type == "object") return object(schema, path);
    if (type == "array") return array(schema, path);
    if (type == "string") return string(schema, path);
    if (type == "number") return {rules_.number()};
    if (type == "integer") return {rules_.integer()};
    if (type == "null") return rules_.text("null");
    return {rules_.one_of({rules_.text("true"), rules_.text("false")})};
  }

  static std::optional<int64_t> count(const Json& schema, const char* key,
                                      const std::string& path) {
    const auto found = schema.find(key);
    if (found == schema.end()) return std::nullopt;
    const bool whole = found->is_number_unsigned() && found->get<uint64_t>() <= kMostRepeats;
    if (!whole) refuse(path, fmt::format("{}; expected a number from 0 to {}", key, kMostRepeats));
    return found->get<int64_t>();
  }

  Symbols string(const Json& schema, const std::string& path) {
    const auto least = count(schema, "minLength", path), most = count(schema, "maxLength", path);
    if (!least && !most) return {rules_.string()};
    if (most && *most < least.value_or(0)) refuse(path, "maxLength is below minLength");
    const Symbols one = {rules_.character()};
    return rules_.text("\"") + Symbols{rules_.repeated(one, one, least.value_or(0), most)} +
           rules_.text("\"");
  }

  Symbols array(const Json& schema, const std::string& path) {
    const int64_t least = count(schema, "minItems", path).value_or(0);
    const auto most = count(schema, "maxItems", path);
    if (most && *most < least) refuse(path, "maxItems is below minItems");
    if (schema.contains("prefixItems")) return tuple(schema, least, most, path);
    const bool none = schema.contains("items") && schema["items"] == false;
    if (none && least > 0) refuse(path, "minItems of an array without items");
    if (none) return rules_.text("[]");
    const Symbol item =
        schema.contains("items") ? compile(schema["items"], path + ".items") : rules_.value();
    return rules_.list('[', {item}, least, most, ']');
  }

  // Just the items of prefixItems: what may follow them is left out.
  Symbols tuple(const Json& schema, int64_t least, std::optional<int64_t> most,
                const std::string& path) {
    const Json& items = schema["prefixItems"];
    const auto size = static_cast<int64_t>(items.size());
    if (!items.is_array() || size < least || (most && *most < size)) {
      refuse(path,
             "prefixItems; expected schemas in an array, as many as minItems and maxItems "
             "allow");
    }
    Symbols out = rules_.text("[");
    for (const Json& item : items) {
      if (out.size() > 1) out = out + rules_.text(",") + Symbols{rules_.space()};
      out = out + Symbols{compile(item, path + ".prefixItems")};
    }
    return out + rules_.text("]");
  }

  struct Property {
    Symbols pair;
    bool required;
  };

  Symbols object(const Json& schema, const std::string& path) {
    const std::vector<Property> all = properties(schema, path);
    const auto additional = schema.find("additionalProperties");
    if (!all.empty()) return members(all);
    if (additional != schema.end() && *additional == false) return rules_.text("{}");
    if (additional == schema.end() || additional->is_boolean()) return {rules_.object()};
    const Symbol value = compile(*additional, path + ".additionalProperties");
    const Symbols pair =
        Symbols{rules_.string()} + rules_.text(":") + Symbols{rules_.space(), value};
    return rules_.list('{', pair, 0, std::nullopt, '}');
  }

  std::vector<Property> properties(const Json& schema, const std::string& path) {
    const Json given = schema.value("properties", Json::object());
    const Json required = schema.value("required", Json::array());
    if (!given.is_object()) refuse(path, "properties; expected an object of schemas");
    if (!required.is_array()) refuse(path, "required; expected an array of names");
    if (given.size() + required.size() > kMostProperties) refuse(path, "too many properties");
    std::set<std::string> missing;
    for (const Json& name : required) {
      if (!name.is_string()) refuse(path, "required; expected an array of names");
      missing.insert(name.get<std::string>());
    }
    std::vector<Property> all;
    for (const auto& [name, value] : given.items()) {
      const bool needed = missing.erase(name) > 0;
      all.push_back({pair(name, compile(value, path + "." + name)), needed});
    }
    for (const std::string& name : missing) all.push_back({pair(name, rules_.value()), true});
    return all;
  }

  Symbols pair(const std::string& name, Symbol value) {
    return rules_.text(Json(name).dump() + ":") + Symbols{rules_.space(), value};
  }

  // The properties in their order; what is not required may be left out. From the end: what may
  // follow the first i, of which some are (`behind`) or none is (`fresh`) there.
  Symbols members(const std::vector<Property>& all) {
    const Symbols close = Symbols{rules_.space()} + rules_.text("}");
    Symbol behind = rules_.one_of({close}), fresh = behind;
    for (size_t i = all.size(); i-- > 0;) {
      const Symbols with = all[i].pair + Symbols{behind};
      std::vector<Symbols> later = {rules_.text(",") + Symbols{rules_.space()} + with};
      std::vector<Symbols> first = {Symbols{rules_.space()} + with};
      if (!all[i].required) {
        later.push_back({behind});
        first.push_back({fresh});
      }
      behind = rules_.one_of(later);
      fresh = rules_.one_of(first);
    }
    return rules_.text("{") + Symbols{fresh};
  }

  Grammar& grammar_;
  JsonRules rules_;
  const Json schema_;
  std::map<std::string, Symbol> references_;
};

}  // namespace

SchemaGrammar schema_grammar(std::string_view schema, const Grammar::Bytes& usable) {
  auto grammar = std::make_shared<Grammar>(usable);
  SchemaCompiler compiler(*grammar, schema.empty() ? Json{{"type", "object"}} : parse(schema));
  const Symbol value = compiler.root();
  const Symbol root =
      compiler.rules().one_of({{value}, compiler.rules().text(" ") + Symbols{value}});
  grammar->finish();
  return {std::move(grammar), root.index};
}

}  // namespace fovea
