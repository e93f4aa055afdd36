#include "grammar/json_schema.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "grammar/json_rules.h"
#include "grammar/json_strings.h"
#include "grammar/number_multiples.h"
#include "grammar/number_range.h"
#include "grammar/schema_parts.h"
#include "grammar/schema_ways.h"

namespace fovea {
namespace {

using Json = SchemaTree::Json;
using Symbol = Grammar::Symbol;
using Symbols = Grammar::Sequence;

constexpr size_t kMostUnique = 8;  // values of an array of unique items, whose subsets are states

const char* const kInPlaceKeys[] = {"$ref", "allOf", "anyOf", "oneOf"};

// Returns the keyword that applies another schema in place and is the only restriction, or nullptr.
const char* lone_keyword(const Json& schema) {
  for (const char* key : kInPlaceKeys)
    if (schema.contains(key) && !restricts_besides(schema, key)) return key;
  return nullptr;
}

bool applies_in_place(const Json& schema) {
  return std::ranges::any_of(kInPlaceKeys, [&](const char* key) { return schema.contains(key); });
}

// Compiles a schema to rules. The recursion is as deep as the text's nesting; targets of $ref and
// combinations of schemas are queued.
class SchemaCompiler {
 public:
  SchemaCompiler(Grammar& grammar, std::string_view schema)
      : grammar_(grammar), rules_(grammar), tree_(schema), ways_(tree_) {}

  // Returns the rule for the values that satisfy the schema.
  Symbol root() {
    const Place place{nullptr, "schema"};
    if (tree_.root() == false) refuse_no_schema(place);
    const Symbol value = compile({&tree_.root()}, place);
    while (!waiting_.empty()) {
      const Waiting next = std::move(waiting_.back());
      waiting_.pop_back();
      grammar_.add(next.rule, {now(next.all, {nullptr, next.place})});
    }
    return rules_.one_of({{value}, rules_.text(" ") + Symbols{value}});
  }

 private:
  struct Waiting {  // a rule to be compiled
    Conjunction all;
    std::string place;
    int32_t rule;
  };

  [[noreturn]] static void refuse_no_schema(const Place& place) {
    refuse_schema(place, "is not a schema that a value can satisfy; expected an object");
  }

  // Returns the rule for the values that satisfy all these schemas.
  Symbol compile(Conjunction all, const Place& place) {
    std::erase_if(all, [](const Json* schema) { return *schema == true; });
    if (all.empty()) return rules_.value();
    for (const Json* schema : all) {
      if (*schema == false) return rules_.one_of({});
      if (!schema->is_object()) refuse_no_schema(place);
    }
    const bool simple =
        all.size() == 1 && (!applies_in_place(*all[0]) || lone_keyword(*all[0]) != nullptr);
    return simple ? now(all, place) : later(all, text_of(place));
  }

  Symbol later(const Conjunction& all, const std::string& place) {
    Conjunction set = all;
    std::ranges::sort(set);
    const auto [known, added] = rules_of_.try_emplace(std::move(set), Symbol{});
    if (added) {
      known->second = rules_.rule();
      waiting_.push_back({all, place, known->second.index});
    }
    return known->second;
  }

  Symbol now(const Conjunction& all, const Place& place) {
    const char* const key = all.size() == 1 ? lone_keyword(*all[0]) : nullptr;
    const std::string_view name = key != nullptr ? key : "";
    if (name == "$ref") {
      const Json& target = ways_.target(*all[0], place);
      return later({&target}, find_key(*all[0], "$ref")->get<std::string>());
    }
    if (name == "anyOf" || name == "oneOf") return choice(*all[0], key, place);
    if (all.size() == 1 && !applies_in_place(*all[0])) return plain(all, place);
    std::vector<Symbols> alternatives;
    for (const Conjunction& way : ways_.of(all, place)) alternatives.push_back({plain(way, place)});
    return rules_.one_of(alternatives);
  }

  Symbol choice(const Json& schema, const char* key, const Place& place) {
    const Json& all = ways_.list(schema, key, place);
    if (std::string_view(key) == "oneOf") ways_.check_exclusive(all, place);
    const Place of_key{&place, key};
    std::vector<Symbols> alternatives;
    for (const Json& each : all) {
      const std::string number = std::to_string(alternatives.size());
      alternatives.push_back({compile({&each}, {&of_key, number})});
    }
    return rules_.one_of(alternatives);
  }

  // Returns the rule for schemas without keywords that apply others in place.
  Symbol plain(const Conjunction& all, const Place& place) {
    for (const Json* schema : all) check_keywords(*schema, place);
    if (const auto values = literals_of(all, place)) return literals(*values, all, place);
    const Types types = generated_types(all, place);
    const bool any = types == kEveryType && std::ranges::none_of(all, [](const Json* schema) {
                       return has_keyword(*schema, kEveryType);
                     });
    if (any) return rules_.value();
    if ((types & kNumberType) == kFractionType)
      refuse_keyword(place, "not allows only numbers with fractions; expected another type");
    std::vector<Symbols> alternatives;
    for (Types type = 1; type < kEveryType; type <<= 1) {
      const bool counted = type == kIntegerType && (types & kFractionType) != 0;
      if ((types & type) != 0 && !counted) alternatives.push_back(of_type(all, type, place));
    }
    return rules_.one_of(alternatives);
  }

  Symbol literals(const Conjunction& values, const Conjunction& all, const Place& place) {
    std::vector<Symbols> alternatives;
    for (const Json* value : values)
      if (satisfies(*value, all, place)) alternatives.push_back(rules_.text(tree_.text(*value)));
    if (alternatives.empty() && all.size() == 1)
      refuse_schema(place, "no value of enum satisfies the schema; expected at least one");
    return rules_.one_of(alternatives);
  }

  Symbols of_type(const Conjunction& all, Types type, const Place& place) {
    if (type == kObjectType) return object(all, place);
    if (type == kArrayType) return array(all, place);
    if (type == kStringType) return string(all, place);
    if ((type & kNumberType) != 0) return {number(all, type == kIntegerType, place)};
    if (type == kNullType) return rules_.text("null");
    return {rules_.one_of({rules_.text("true"), rules_.text("false")})};
  }

  Symbol number(const Conjunction& all, bool whole, const Place& place) {
    const auto least = lower_bound(all, place), most = upper_bound(all, place);
    if (least && most && std::stod(least->number) > std::stod(most->number))
      refuse_schema(place,
                    "the lower bound is above the upper one; expected at most the upper bound");
    const Json* const step = only_value(all, "multipleOf", place);
    if (step == nullptr && !least && !most) return whole ? rules_.integer() : rules_.number();
    if (step != nullptr && !step->is_number())
      refuse_schema(place, "multipleOf is not a number; expected one above 0");
    try {
      if (step != nullptr) return multiples_of(step->dump(), least, most, whole, grammar_, rules_);
      return ranges_.between(least, most, whole);
    } catch (const Error& error) {
      fail(error.kind(), "{}: {}", text_of(place), error.what());
    }
  }

  // Returns the value of a key that the schemas do not give with different values; nullptr if none
  // has it.
  static const Json* only_value(const Conjunction& all, const char* key, const Place& place) {
    const Json* only = nullptr;
    for (const Json* schema : all) {
      const Json* const found = find_key(*schema, key);
      if (found != nullptr && only != nullptr && *found != *only)
        refuse_keyword(place, fmt::format("{} has two values; expected one", key));
      if (found != nullptr) only = found;
    }
    return only;
  }

  // Returns the expression that `pattern`, or else `format`, requires of a string, or "". A format
  // is an annotation: with limits of the length it restricts nothing.
  static std::string expression(const Conjunction& all, bool limited, const Place& place) {
    if (const Json* const pattern = only_value(all, "pattern", place)) {
      if (!pattern->is_string())
        refuse_schema(place, "pattern is not a string; expected a regular expression");
      return *pattern;
    }
    const Json* format = nullptr;
    for (const Json* schema : all)
      if (const Json* found = find_key(*schema, "format"); found != nullptr && found->is_string())
        format = found;
    const char* const of_format =
        format != nullptr && !limited ? pattern_of_format(*format) : nullptr;
    return of_format != nullptr ? of_format : "";
  }

  Symbols string(const Conjunction& all, const Place& place) {
    const auto least = largest_count(all, "minLength", place),
               most = smallest_count(all, "maxLength", place);
    if (most && *most < least.value_or(0))
      refuse_schema(place, "maxLength is below minLength; expected at least minLength");
    if (const std::string pattern = expression(all, least || most, place); !pattern.empty()) {
      try {
        return {strings_matching(pattern, least.value_or(0), most, grammar_)};
      } catch (const Error& error) {
        fail(error.kind(), "{}: {}", text_of(place), error.what());
      }
    }
    if (!least && !most) return {rules_.string()};
    const Symbols one = {rules_.character()};
    return rules_.text("\"") + Symbols{rules_.repeated(one, one, least.value_or(0), most)} +
           rules_.text("\"");
  }

  // The items of an array: those at the first places, and the others.
  struct Items {
    std::vector<Conjunction> first;
    Conjunction others;
    bool more;  // others may be generated
  };

  // In drafts before 2020-12, `items` may be an array, followed by additionalItems.
  static Items items_of(const Conjunction& all, const Place& place) {
    Items items = {{}, {}, true};
    std::vector<std::pair<const Json*, const Json*>> parts;  // first, others
    size_t size = 0;
    for (const Json* schema : all) {
      const Json *first = find_key(*schema, "prefixItems"), *others = find_key(*schema, "items");
      if (first == nullptr && others != nullptr && others->is_array())
        first = others, others = find_key(*schema, "additionalItems");
      if (first != nullptr && !first->is_array())
        refuse_schema(place, "prefixItems is invalid; expected an array of schemas");
      const Json* const rest = find_key(*schema, "unevaluatedItems");
      parts.emplace_back(first, others != nullptr ? others : rest);
      if (first != nullptr) size = std::max(size, first->size());
    }
    items.first.resize(size);
    for (const auto& [first, others] : parts) {
      for (size_t i = 0; i < size; ++i) {
        if (first != nullptr && i < first->size())
          items.first[i].push_back(&(*first)[i]);
        else if (others != nullptr)
          items.first[i].push_back(others);
      }
      if (others != nullptr) items.others.push_back(others);
    }
    items.more =
        (size == 0 || !items.others.empty()) &&
        std::ranges::none_of(items.others, [](const Json* each) { return *each == false; });
    return items;
  }

  // Without `items` and minItems, an array has exactly the items of prefixItems.
  Symbols array(const Conjunction& all, const Place& place) {
    const Items items = items_of(all, place);
    const auto size = static_cast<int64_t>(items.first.size());
    const auto given = largest_count(all, "minItems", place);
    auto most = smallest_count(all, "maxItems", place);
    if (!items.more) most = std::min(size, most.value_or(size));
    const int64_t least = given.value_or(std::min(size, most.value_or(size)));
    if (most && *most < least)
      refuse_schema(place,
                    "minItems is above maxItems or the number of items; expected at most it");
    if (is_unique(all, place) && most.value_or(2) > 1) return unique(items, least, most, place);
    if (size > 0) return tuple(items, least, most, place);
    if (!items.more) return rules_.text("[]");
    const Symbol item = compile(items.others, {&place, "items"});
    return rules_.list('[', {item}, least, most, ']');
  }

  // Built from the end: `rest` is what may follow the first i items.
  Symbols tuple(const Items& items, int64_t least, std::optional<int64_t> most,
                const Place& place) {
    const Place of_items{&place, "prefixItems"};
    const auto size = static_cast<int64_t>(items.first.size());
    const Symbols comma = rules_.text(",") + Symbols{rules_.space()};
    Symbols rest = rules_.text("]");
    if (items.more && most.value_or(size + 1) > size) {
      const Symbols next = comma + Symbols{compile(items.others, {&place, "items"})};
      const auto more = most ? std::optional(*most - size) : std::nullopt;
      rest = Symbols{rules_.repeated(next, next, std::max<int64_t>(0, least - size), more)} + rest;
    }
    for (int64_t i = std::min(size, most.value_or(size)); i-- > 0;) {
      const std::string number = std::to_string(i);
      Symbols with = i > 0 ? comma : Symbols{};
      with.push_back(compile(items.first[static_cast<size_t>(i)], {&of_items, number}));
      with = std::move(with) + rest;
      std::vector<Symbols> ways = {with};
      if (i >= least) ways.push_back(rules_.text("]"));
      rest = {rules_.one_of(ways)};
    }
    return rules_.text("[") + rest;
  }

  static bool is_unique(const Conjunction& all, const Place& place) {
    return std::ranges::any_of(all, [&](const Json* schema) {
      const Json* const unique = find_key(*schema, "uniqueItems");
      if (unique != nullptr && !unique->is_boolean())
        refuse_schema(place, "uniqueItems is invalid; expected true or false");
      return unique != nullptr && *unique == true;
    });
  }

  // Returns an array of different values of a short enum: a rule for each set of values that the
  // array has already.
  Symbols unique(const Items& items, int64_t least, std::optional<int64_t> most,
                 const Place& place) {
    const auto alternatives =
        items.first.empty() ? ways_.of(items.others, place) : std::vector<Conjunction>{};
    const auto values =
        alternatives.size() == 1 ? literals_of(alternatives[0], place) : std::nullopt;
    if (!values || values->size() > kMostUnique)
      refuse_keyword(place, fmt::format("uniqueItems is supported for items of an enum of at most "
                                        "{} values",
                                        kMostUnique));
    std::vector<Symbols> texts;
    for (size_t i = 0; i < values->size(); ++i) {
      const Json& value = *(*values)[i];
      const bool repeated = std::any_of(values->begin(), values->begin() + static_cast<long>(i),
                                        [&](const Json* other) { return *other == value; });
      if (!repeated && satisfies(value, alternatives[0], place))
        texts.push_back(rules_.text(tree_.text(value)));
    }
    std::vector<Symbol> after(size_t{1} << texts.size());  // by set
    for (size_t set = after.size(); set-- > 0;) {
      const auto size = static_cast<int64_t>(std::popcount(set));
      std::vector<Symbols> next;
      if (size >= least) next.push_back(rules_.text("]"));
      for (size_t i = 0; i < texts.size() && size < most.value_or(size + 1); ++i) {
        if ((set >> i & 1) != 0) continue;
        const Symbols comma = size > 0 ? rules_.text(",") + Symbols{rules_.space()} : Symbols{};
        next.push_back(comma + texts[i] + Symbols{after[set | size_t{1} << i]});
      }
      after[set] = rules_.one_of(next);
    }
    return rules_.text("[") + Symbols{after[0]};
  }

  struct Property {
    Symbols pair;
    bool required;
  };

  Symbols object(const Conjunction& all, const Place& place) {
    const int64_t least = largest_count(all, "minProperties", place).value_or(0);
    const auto most = smallest_count(all, "maxProperties", place);
    if (most && *most < least)
      refuse_schema(place, "maxProperties is below minProperties; expected at least it");
    std::vector<PropertyName> names = names_of(all, tree_, place);
    const Json* const names_schema = only_value(all, "propertyNames", place);
    const bool listed = names_schema != nullptr && add_names(*names_schema, names, place);
    const Json* const patterns = only_value(all, "patternProperties", place);
    if (!names.empty()) {
      if (patterns != nullptr || (names_schema != nullptr && !listed))
        refuse_keyword(place,
                       "patternProperties and propertyNames cannot be combined with named "
                       "properties; expected only one of them");
      const std::vector<Property> found = properties(names, all, place);
      if (least > std::ssize(found))
        refuse_schema(place,
                      "minProperties is above the number of properties; expected at most it");
      return members(found, least, most);
    }
    return map(all, names_schema, patterns, least, most, place);
  }

  // Adds the names of a schema of names that lists them. Returns whether it does.
  bool add_names(const Json& schema, std::vector<PropertyName>& names, const Place& place) {
    const std::vector<Conjunction> alternatives = ways_.of({&schema}, place);
    const auto values =
        alternatives.size() == 1 ? literals_of(alternatives[0], place) : std::nullopt;
    if (!values) return false;
    const auto is_listed = [&](const PropertyName& name) {
      return std::ranges::any_of(*values, [&](const Json* value) { return *value == name.name; });
    };
    if (!std::ranges::all_of(names, is_listed))
      refuse_keyword(place, "propertyNames lacks a named property; expected all of them");
    for (const Json* value : *values) {
      if (!value->is_string() || !satisfies(*value, alternatives[0], place)) continue;
      const std::string_view name = value->get_ref<const std::string&>();
      const auto same = [&](const PropertyName& other) { return other.name == name; };
      if (std::ranges::none_of(names, same)) names.push_back({name, false});
    }
    return true;
  }

  // Returns an object of any names, or those that a schema or a pattern describes.
  Symbols map(const Conjunction& all, const Json* names, const Json* patterns, int64_t least,
              std::optional<int64_t> most, const Place& place) {
    static const Json text = {{"type", "string"}};
    Conjunction value = value_of(all, "");
    Conjunction key = {&text};
    Symbol key_rule = rules_.string();
    if (names != nullptr) key.push_back(names), key_rule = compile(key, {&place, "propertyNames"});
    if (patterns != nullptr) {
      if (names != nullptr || !patterns->is_object() || patterns->size() != 1)
        refuse_keyword(place,
                       "patternProperties is supported with one pattern, without "
                       "propertyNames");
      value = {&patterns->begin().value()};
      key_rule = matching_key(patterns->begin().key(), place);
    }
    const bool none = std::ranges::any_of(value, [](const Json* each) { return *each == false; });
    if (none && least > 0)
      refuse_schema(place, "minProperties is above 0 for an object without properties; expected 0");
    if (none || most == 0) return rules_.text("{}");
    const Symbol each = compile(value, {&place, "additionalProperties"});
    const Symbols pair = Symbols{key_rule} + rules_.text(":") + Symbols{rules_.space(), each};
    return rules_.list('{', pair, least, most, '}');
  }

  Symbol matching_key(const std::string& pattern, const Place& place) {
    try {
      return strings_matching(pattern, 0, std::nullopt, grammar_);
    } catch (const Error& error) {
      fail(error.kind(), "{}: {}", text_of(place), error.what());
    }
  }

  // Returns the properties that an object may have; those that no value satisfies are omitted.
  std::vector<Property> properties(const std::vector<PropertyName>& names, const Conjunction& all,
                                   const Place& place) {
    std::vector<Property> found;
    for (const auto& [name, required] : names) {
      const Conjunction value = value_of(all, name);
      const bool never =
          std::ranges::any_of(value, [](const Json* each) { return *each == false; });
      if (never && required)
        refuse_schema(place,
                      "required contains a name that additionalProperties forbids; expected names "
                      "in properties");
      if (never) continue;
      found.push_back({rules_.text(Json(name).dump() + ":") +
                           Symbols{rules_.space(), compile(value, {&place, name})},
                       required});
    }
    return found;
  }

  // Returns the properties in their order; those that are not required may be omitted. Built from
  // the end: next[n] is what may follow the first i properties if n of them are present. Above the
  // limits, further properties do not change the number.
  Symbols members(const std::vector<Property>& all, int64_t least, std::optional<int64_t> most) {
    const auto size = std::ssize(all);
    const int64_t limit = std::min<int64_t>(most.value_or(size), size);
    const int64_t states = std::max({int64_t{1}, least, limit < size ? limit : 0}) + 1;
    const Symbol close = rules_.one_of({Symbols{rules_.space()} + rules_.text("}")});
    std::vector<Symbol> next(static_cast<size_t>(states), close);
    std::fill_n(next.begin(), least, rules_.one_of({}));
    for (int64_t i = size; i-- > 0;) {
      const auto& [pair, required] = all[static_cast<size_t>(i)];
      std::vector<Symbol> from;
      for (int64_t n = 0; n < std::min(states, i + 2); ++n) {
        std::vector<Symbols> options;
        const Symbols before =
            (n > 0 ? rules_.text(",") : Symbols{}) + Symbols{rules_.space()} + pair;
        if (limit == size || n < limit)
          options.push_back(before +
                            Symbols{next[static_cast<size_t>(std::min(n + 1, states - 1))]});
        if (!required) options.push_back({next[static_cast<size_t>(n)]});
        from.push_back(rules_.one_of(options));
      }
      from.resize(static_cast<size_t>(states), from.back());
      next = std::move(from);
    }
    return rules_.text("{") + Symbols{next[0]};
  }

  Grammar& grammar_;
  JsonRules rules_;
  NumberRanges ranges_{grammar_, rules_};
  const SchemaTree tree_;
  SchemaWays ways_;
  std::map<Conjunction, Symbol> rules_of_;  // by schemas, sorted
  std::vector<Waiting> waiting_;
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
