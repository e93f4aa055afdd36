#include "grammar/json_schema.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "fovea/excerpt.h"
#include "grammar/json_rules.h"
#include "grammar/json_strings.h"
#include "grammar/number_range.h"
#include "grammar/schema_tree.h"

namespace fovea {
namespace {

using Json = SchemaTree::Json;
using Symbol = Grammar::Symbol;
using Symbols = Grammar::Sequence;

constexpr int64_t kMostRepeats = 100'000;
constexpr size_t kMostProperties = 2000;

// Keywords that inform a reader and restrict nothing; "format" is one of them by default (JSON
// Schema Validation 2020-12, 7.2.1).
const std::set<std::string, std::less<>> kNotes = {
    "title",    "description", "default",     "examples",     "$schema",  "$id",
    "$comment", "$defs",       "definitions", "deprecated",   "readOnly", "writeOnly",
    "format",   "strict",      "nullable",    "discriminator"};
const std::map<std::string, std::set<std::string, std::less<>>> kKeywords = {
    {"object", {"properties", "required", "additionalProperties"}},
    {"array", {"items", "prefixItems", "minItems", "maxItems"}},
    {"string", {"minLength", "maxLength", "pattern"}},
    {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}},
    {"integer", {}},
    {"boolean", {}},
    {"null", {}}};

const std::vector<std::string_view> kNoKeys;

// The compiler's position in the schema; converted to text only for errors.
struct Place {
  const Place* above;
  std::string_view name;
};

// Returns the place as one short line, for any depth and any names.
std::string text_of(const Place& place) {
  constexpr size_t kFirst = 2, kLast = 6, kMostOfName = 40;
  std::vector<std::string_view> names;
  for (const Place* at = &place; at != nullptr; at = at->above) names.push_back(at->name);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += '.';
    if (i == kFirst && names.size() > kFirst + kLast) {
      text += "..";
      i = names.size() - kLast - 1;
    } else {
      text += excerpt(names[names.size() - 1 - i], kMostOfName);
    }
  }
  return text;
}

[[noreturn]] void refuse(const Place& place, const std::string& why) {
  fail(ErrorKind::InvalidArgument, "{}: {}", text_of(place), why);
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

// Returns the value of a key, or nullptr.
const Json* find(const Json& schema, const char* key) {
  const auto found = schema.find(key);
  return found == schema.end() ? nullptr : &*found;
}

// Compiles a schema to rules. The recursion is as deep as the text's nesting; targets of $ref are
// queued.
class SchemaCompiler {
 public:
  SchemaCompiler(Grammar& grammar, std::string_view schema)
      : grammar_(grammar), rules_(grammar), tree_(schema) {}

  // Returns the rule for the values that satisfy the schema.
  Symbol root() {
    const Symbol value = compile(tree_.root(), {nullptr, "schema"});
    while (!waiting_.empty()) {
      const Reference next = waiting_.back();
      waiting_.pop_back();
      grammar_.add(next.rule, {compile(*next.schema, {nullptr, next.pointer})});
    }
    return rules_.one_of({{value}, rules_.text(" ") + Symbols{value}});
  }

 private:
  struct Reference {
    std::string_view pointer;
    const Json* schema;
    int32_t rule;
  };

  // Returns the rule for the values that satisfy `schema`, a part of the schema.
  Symbol compile(const Json& schema, const Place& place) {
    if (schema == true) return rules_.value();
    if (!schema.is_object())
      refuse(place, "is not a schema that a value can satisfy; expected an object");
    if (schema.contains("$ref")) return alone(schema, "$ref", place), reference(schema, place);
    for (const char* const key : {"anyOf", "oneOf", "allOf"}) {
      if (schema.contains(key)) return alone(schema, key, place), choice(schema, key, place);
    }
    if (schema.contains("enum") || schema.contains("const")) return literals(schema, place);
    std::vector<Symbols> ways;
    const std::vector<std::string> types = types_of(schema, place);
    refuse_others(schema, place);
    for (const std::string& type : types) ways.push_back(of_type(schema, type, place));
    return ways.empty() ? rules_.value() : rules_.one_of(ways);
  }

  // Throws Unsupported if the schema has a restricting keyword besides `key`. The type "object" is
  // allowed together with anyOf, oneOf and allOf.
  static void alone(const Json& schema, const std::string& key, const Place& place) {
    for (const auto& [other, value] : schema.items()) {
      const bool type_of_all = other == "type" && key != "$ref" && value == "object";
      if (other != key && !kNotes.contains(other) && !type_of_all) {
        fail(ErrorKind::Unsupported, "{}: {} cannot be combined with {}; expected only one of them",
             text_of(place), excerpt(other, 40), key);
      }
    }
  }

  Symbol choice(const Json& schema, const char* key, const Place& place) {
    const Json& all = *find(schema, key);
    const Place of_key{&place, key};
    if (!all.is_array() || all.empty())
      refuse(of_key, "is invalid; expected a non-empty array of schemas");
    if (std::string_view(key) == "allOf" && all.size() > 1) {
      fail(ErrorKind::Unsupported, "{}: allOf has several schemas; expected one", text_of(place));
    }
    std::vector<Symbols> ways;
    for (const Json& each : all) {
      const std::string number = std::to_string(ways.size());
      ways.push_back({compile(each, {&of_key, number})});
    }
    return rules_.one_of(ways);
  }

  Symbol reference(const Json& schema, const Place& place) {
    const Json& target = *find(schema, "$ref");
    if (!target.is_string()) refuse(place, "$ref is not a string; expected \"#/$defs/NAME\"");
    const auto& pointer = target.get_ref<const std::string&>();
    if (const auto found = references_.find(pointer); found != references_.end()) {
      return found->second;
    }
    if (pointer.empty() || pointer[0] != '#') {
      refuse(place, "$ref leads out of the schema; expected \"#/$defs/NAME\"");
    }
    const Symbol rule = Grammar::call(grammar_.add_rule());
    waiting_.push_back({pointer, &at(pointer, place), rule.index});
    references_.emplace(pointer, rule);
    return rule;
  }

  const Json& at(const std::string& pointer, const Place& place) const {
    try {
      return tree_.root().at(Json::json_pointer(pointer.substr(1)));
    } catch (const Json::exception&) {
      refuse(place, "$ref has no target in the schema; expected \"#/$defs/NAME\"");
    }
  }

  Symbol literals(const Json& schema, const Place& place) {
    const Json *const all = find(schema, "enum"), *const only = find(schema, "const");
    if (all != nullptr && (!all->is_array() || all->empty()))
      refuse(place, "enum is invalid; expected a non-empty array of values");
    const bool typed = schema.contains("type");
    const std::vector<std::string> types =
        typed ? types_of(schema, place) : std::vector<std::string>();
    std::vector<Symbols> ways;
    const auto add = [&](const Json& value) {
      const bool fits = std::any_of(types.begin(), types.end(),
                                    [&](const std::string& type) { return has_type(value, type); });
      if (fits || !typed) ways.push_back(rules_.text(tree_.text(value)));
    };
    if (all == nullptr) add(*only);
    for (size_t i = 0; all != nullptr && i < all->size(); ++i) {
      if (only == nullptr || (*all)[i] == *only) add((*all)[i]);
    }
    if (ways.empty()) refuse(place, "no value of enum satisfies the schema; expected at least one");
    return rules_.one_of(ways);
  }

  // Returns the types in "type", or those that the keywords imply; empty for any type.
  static std::vector<std::string> types_of(const Json& schema, const Place& place) {
    std::vector<std::string> types;
    const Json* const given = find(schema, "type");
    if (given == nullptr) {
      for (const auto& [type, keywords] : kKeywords) {
        const bool meant =
            std::any_of(keywords.begin(), keywords.end(),
                        [&](const std::string& key) { return schema.contains(key); });
        if (meant) types.push_back(type);
      }
      return types;
    }
    const auto add = [&](const Json& type) {
      if (!type.is_string() || !kKeywords.contains(type.get<std::string>())) {
        refuse(place,
               "type is unknown; expected object, array, string, number, integer, boolean "
               "or null");
      }
      if (std::ranges::count(types, type.get<std::string>()) == 0) types.push_back(type);
    };
    if (given->is_array())
      std::ranges::for_each(*given, add);
    else
      add(*given);
    if (types.empty()) refuse(place, "type is empty; expected at least one");
    return types;
  }

  static void refuse_others(const Json& schema, const Place& place) {
    for (const auto& [key, value] : schema.items()) {
      if (key == "type" || kNotes.contains(key)) continue;
      bool known = false;
      for (const auto& [type, keywords] : kKeywords) known |= keywords.contains(key);
      if (!known) {
        fail(ErrorKind::Unsupported,
             "{}: the keyword {} is not supported; expected one listed in docs/serve.md",
             text_of(place), excerpt(key, 40));
      }
    }
  }

  Symbols of_type(const Json& schema, const std::string& type, const Place& place) {
    if (type == "object") return object(schema, place);
    if (type == "array") return array(schema, place);
    if (type == "string") return string(schema, place);
    if (type == "number" || type == "integer") return {number(schema, type == "integer", place)};
    if (type == "null") return rules_.text("null");
    return {rules_.one_of({rules_.text("true"), rules_.text("false")})};
  }

  static std::optional<int64_t> count(const Json& schema, const char* key, const Place& place) {
    const Json* const found = find(schema, key);
    if (found == nullptr) return std::nullopt;
    const bool whole = found->is_number_unsigned() && found->get<uint64_t>() <= kMostRepeats;
    if (!whole)
      refuse(place,
             fmt::format("{} is invalid; expected an integer from 0 to {}", key, kMostRepeats));
    return found->get<int64_t>();
  }

  // Returns the closer of the bounds with the keys `key` and `exclusive_key`. sign: 1 for lower
  // bounds, -1 for upper ones.
  static std::optional<NumberBound> bound(const Json& schema, const char* key,
                                          const char* exclusive_key, int sign, const Place& place) {
    std::optional<NumberBound> closest;
    double closest_value = 0;
    for (const char* const each : {key, exclusive_key}) {
      const Json* const found = find(schema, each);
      if (found == nullptr) continue;
      if (!found->is_number()) refuse(place, fmt::format("{} is invalid; expected a number", each));
      const double value = found->get<double>() * sign;
      if (closest && value < closest_value) continue;
      closest = {found->dump(), each == exclusive_key};
      closest_value = value;
    }
    return closest;
  }

  Symbol number(const Json& schema, bool whole, const Place& place) {
    const auto least = bound(schema, "minimum", "exclusiveMinimum", 1, place);
    const auto most = bound(schema, "maximum", "exclusiveMaximum", -1, place);
    if (!least && !most) return whole ? rules_.integer() : rules_.number();
    if (least && most && std::stod(least->number) > std::stod(most->number))
      refuse(place, "the lower bound is above the upper one; expected at most the upper bound");
    try {
      return ranges_.between(least, most, whole);
    } catch (const Error& error) {
      refuse(place, error.what());
    }
  }

  // Returns the expression that `pattern`, or else `format`, requires of a string, or "". A format
  // is an annotation: with limits of the length it restricts nothing.
  static std::string expression(const Json& schema, bool limited, const Place& place) {
    if (const Json* const pattern = find(schema, "pattern"); pattern != nullptr) {
      if (!pattern->is_string())
        refuse(place, "pattern is not a string; expected a regular expression");
      if (limited)
        fail(ErrorKind::Unsupported,
             "{}: pattern cannot be combined with minLength or maxLength; expected a pattern with "
             "counts, such as {{2,8}}",
             text_of(place));
      return *pattern;
    }
    const Json* const format = find(schema, "format");
    const bool named = format != nullptr && format->is_string() && !limited;
    const char* const of_format = named ? pattern_of_format(*format) : nullptr;
    return of_format != nullptr ? of_format : "";
  }

  Symbols string(const Json& schema, const Place& place) {
    const auto least = count(schema, "minLength", place), most = count(schema, "maxLength", place);
    if (const std::string pattern = expression(schema, least || most, place); !pattern.empty()) {
      try {
        return {strings_matching(pattern, grammar_)};
      } catch (const Error& error) {
        refuse(place, error.what());
      }
    }
    if (!least && !most) return {rules_.string()};
    if (most && *most < least.value_or(0))
      refuse(place, "maxLength is below minLength; expected at least minLength");
    const Symbols one = {rules_.character()};
    return rules_.text("\"") + Symbols{rules_.repeated(one, one, least.value_or(0), most)} +
           rules_.text("\"");
  }

  Symbols array(const Json& schema, const Place& place) {
    const int64_t least = count(schema, "minItems", place).value_or(0);
    const auto most = count(schema, "maxItems", place);
    if (most && *most < least)
      refuse(place, "maxItems is below minItems; expected at least minItems");
    if (schema.contains("prefixItems")) return tuple(schema, least, most, place);
    const Json* const items = find(schema, "items");
    const bool none = items != nullptr && *items == false;
    if (none && least > 0)
      refuse(place, "minItems is above 0 for an array without items; expected 0");
    if (none) return rules_.text("[]");
    const Symbol item = items != nullptr ? compile(*items, {&place, "items"}) : rules_.value();
    return rules_.list('[', {item}, least, most, ']');
  }

  // Allows only the items of prefixItems: additional items are never generated.
  Symbols tuple(const Json& schema, int64_t least, std::optional<int64_t> most,
                const Place& place) {
    const Json& items = *find(schema, "prefixItems");
    const Place of_items{&place, "prefixItems"};
    const auto size = static_cast<int64_t>(items.size());
    if (!items.is_array() || size < least || (most && *most < size)) {
      refuse(
          place,
          "prefixItems is invalid; expected an array of schemas, as many as minItems and maxItems "
          "allow");
    }
    Symbols out = rules_.text("[");
    for (int64_t i = 0; i < size; ++i) {
      const std::string number = std::to_string(i);
      if (i > 0) out = std::move(out) + rules_.text(",") + Symbols{rules_.space()};
      out.push_back(compile(items[static_cast<size_t>(i)], {&of_items, number}));
    }
    return std::move(out) + rules_.text("]");
  }

  struct Property {
    Symbols pair;
    bool required;
  };

  Symbols object(const Json& schema, const Place& place) {
    const Json* const additional = find(schema, "additionalProperties");
    const bool none = additional != nullptr && *additional == false;
    const bool any = additional == nullptr || additional->is_boolean();
    const Symbol other =
        any ? rules_.value() : compile(*additional, {&place, "additionalProperties"});
    const std::vector<Property> all =
        properties(schema, none ? std::nullopt : std::optional(other), place);
    if (!all.empty()) return members(all);
    if (none) return rules_.text("{}");
    if (any) return {rules_.object()};
    const Symbols pair =
        Symbols{rules_.string()} + rules_.text(":") + Symbols{rules_.space(), other};
    return rules_.list('{', pair, 0, std::nullopt, '}');
  }

  // Returns the properties; required names without a schema have values of `other`.
  std::vector<Property> properties(const Json& schema, std::optional<Symbol> other,
                                   const Place& place) {
    static const Json no_properties = Json::object(), no_names = Json::array();
    const Json *given = find(schema, "properties"), *required = find(schema, "required");
    if (given == nullptr) given = &no_properties;
    if (required == nullptr) required = &no_names;
    if (!given->is_object())
      refuse(place, "properties is not an object; expected an object of schemas");
    if (!required->is_array())
      refuse(place, "required is not an array; expected an array of names");
    if (given->size() + required->size() > kMostProperties) {
      refuse(place, fmt::format("{} properties and required names; expected at most {}",
                                given->size() + required->size(), kMostProperties));
    }
    std::set<std::string_view> missing;
    for (const Json& name : *required) {
      if (!name.is_string()) refuse(place, "required is not an array of names; expected strings");
      missing.insert(name.get_ref<const std::string&>());
    }
    std::vector<Property> all;
    for (const std::string_view name : given == &no_properties ? kNoKeys : tree_.keys(*given)) {
      const bool needed = missing.erase(name) > 0;
      all.push_back({pair(name, compile(*given->find(name), {&place, name})), needed});
    }
    if (!missing.empty() && !other)
      refuse(place,
             "required contains a name that additionalProperties forbids; expected names in "
             "properties");
    for (const std::string_view name : missing) all.push_back({pair(name, *other), true});
    return all;
  }

  Symbols pair(std::string_view name, Symbol value) {
    return rules_.text(Json(name).dump() + ":") + Symbols{rules_.space(), value};
  }

  // Returns the properties in their order; those that are not required may be omitted. Built from
  // the end: `after` is what may follow the first i properties if some of them are present, `fresh`
  // if none of them is.
  Symbols members(const std::vector<Property>& all) {
    const Symbols close = Symbols{rules_.space()} + rules_.text("}");
    Symbol after = rules_.one_of({close}), fresh = after;
    for (size_t i = all.size(); i-- > 0;) {
      const Symbols with = all[i].pair + Symbols{after};
      std::vector<Symbols> later = {rules_.text(",") + Symbols{rules_.space()} + with};
      std::vector<Symbols> first = {Symbols{rules_.space()} + with};
      if (!all[i].required) {
        later.push_back({after});
        first.push_back({fresh});
      }
      after = rules_.one_of(later);
      fresh = rules_.one_of(first);
    }
    return rules_.text("{") + Symbols{fresh};
  }

  Grammar& grammar_;
  JsonRules rules_;
  NumberRanges ranges_{grammar_, rules_};
  const SchemaTree tree_;
  std::unordered_map<std::string_view, Symbol> references_;  // by JSON pointer
  std::vector<Reference> waiting_;                           // to be compiled
};

}  // namespace

SchemaGrammar schema_grammar(std::string_view schema, const Grammar::Bytes& usable) {
  auto grammar = std::make_shared<Grammar>(usable);
  const Symbol root =
      SchemaCompiler(*grammar, schema.empty() ? R"({"type": "object"})" : schema).root();
  grammar->finish();
  return {std::move(grammar), root.index};
}

}  // namespace fovea
