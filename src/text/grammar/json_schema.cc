#include "grammar/json_schema.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "grammar/json_rules.h"
#include "grammar/json_strings.h"
#include "grammar/number_multiples.h"
#include "grammar/number_order.h"
#include "grammar/number_range.h"
#include "grammar/schema_negation.h"
#include "grammar/schema_rules.h"

namespace fovea::text {
namespace {

using Json = SchemaTree::Json;
using Symbol = Grammar::Symbol;
using Symbols = Grammar::Sequence;

constexpr size_t kStepsOfSchema = 50;  // to read its keywords

const char* const kInPlaceKeys[] = {"$ref", "allOf", "anyOf", "oneOf"};

// Returns the keyword that applies another schema in place and is the only restriction, or nullptr.
const char* lone_keyword(const Json& schema) {
  for (const char* key : kInPlaceKeys)
    if (schema.contains(key) && !restricts_besides(schema, key)) return key;
  return nullptr;
}

bool applies_in_place(const Json& schema) {
  return has_condition(schema) ||
         std::ranges::any_of(kInPlaceKeys, [&](const char* key) { return schema.contains(key); });
}

// Compiles a schema to rules. The recursion is as deep as the text's nesting; targets of $ref and
// combinations of schemas are queued.
class SchemaCompiler {
 public:
  SchemaCompiler(Grammar& grammar, std::string_view schema, Words words)
      : grammar_(grammar), rules_(grammar, words), tree_(schema), ways_(tree_, work_) {}

  // Returns the rule for the values that satisfy the schema.
  Symbol root() {
    const SchemaLocation location{nullptr, "schema"};
    if (tree_.root() == false) refuse_no_schema(location);
    const Symbol value = compile({&tree_.root()}, location);
    while (!waiting_.empty()) {
      const Waiting next = std::move(waiting_.back());
      waiting_.pop_back();
      grammar_.add(next.rule, {now(next.all, {nullptr, next.location})});
    }
    return rules_.one_of({{value}, rules_.text(" ") + Symbols{value}});
  }

 private:
  struct Waiting {  // a rule to be compiled
    Conjunction all;
    std::string location;
    int32_t rule;
  };

  [[noreturn]] static void refuse_no_schema(const SchemaLocation& location) {
    refuse_schema(location, "is not a schema that a value can satisfy; expected an object");
  }

  // Returns the rule for the values that satisfy all these schemas.
  Symbol compile(Conjunction all, const SchemaLocation& location) {
    work_.add(all.size(), location);
    std::erase_if(all, [](const Json* schema) { return *schema == true; });
    if (all.empty()) return rules_.value();
    for (const Json* schema : all) {
      if (*schema == false) return rules_.one_of({});
      if (!schema->is_object()) refuse_no_schema(location);
    }
    const bool simple =
        all.size() == 1 && (!applies_in_place(*all[0]) || lone_keyword(*all[0]) != nullptr);
    return simple ? now(all, location) : later(all, text_of(location));
  }

  Symbol later(const Conjunction& all, const std::string& location) {
    Conjunction set = all;
    std::ranges::sort(set);
    const auto [known, added] = rules_of_.try_emplace(std::move(set), Symbol{});
    if (added) {
      known->second = rules_.rule();
      waiting_.push_back({all, location, known->second.index});
    }
    return known->second;
  }

  Symbol now(const Conjunction& all, const SchemaLocation& location) {
    const char* const key = all.size() == 1 ? lone_keyword(*all[0]) : nullptr;
    const std::string_view name = key != nullptr ? key : "";
    if (name == "$ref") {
      const Json& target = ways_.target(*all[0], location);
      return later({&target}, find_key(*all[0], "$ref")->get<std::string>());
    }
    if (name == "anyOf" || name == "oneOf") return choice(*all[0], key, location);
    if (all.size() == 1 && !applies_in_place(*all[0])) return plain(all, location);
    std::vector<Symbols> alternatives;
    for (const Conjunction& way : ways_.of(all, location))
      alternatives.push_back({plain(way, location)});
    return rules_.one_of(alternatives);
  }

  Symbol choice(const Json& schema, const char* key, const SchemaLocation& location) {
    const Json& all = ways_.list(schema, key, location);
    if (std::string_view(key) == "oneOf") ways_.check_exclusive(all, location);
    const SchemaLocation of_key{&location, key};
    std::vector<Symbols> alternatives;
    for (const Json& each : all) {
      const std::string number = std::to_string(alternatives.size());
      alternatives.push_back({compile({&each}, {&of_key, number})});
    }
    return rules_.one_of(alternatives);
  }

  // Returns the rule for schemas without keywords that apply others in place.
  Symbol plain(const Conjunction& all, const SchemaLocation& location) {
    for (const Json* schema : all) {
      work_.add(kStepsOfSchema + schema->size(), location);
      check_keywords(*schema, location);
    }
    if (const auto values = literals_of(all, work_, location))
      return literals(*values, all, location);
    const Types types = generated_types(all, location);
    const bool any = types == kEveryType && std::ranges::none_of(all, [](const Json* schema) {
                       return has_keyword(*schema, kEveryType);
                     });
    const Conjunction excluded = exclusions_of(all, location);
    if (any && excluded.empty()) return rules_.value();
    if ((types & kNumberType) == kFractionType)
      refuse_keyword(location, "not allows only numbers with fractions; expected another type");
    std::vector<Symbols> alternatives;
    for (Types type = 1; type < kEveryType; type <<= 1) {
      const bool counted = type == kIntegerType && (types & kFractionType) != 0;
      if ((types & type) != 0 && !counted)
        alternatives.push_back(of_type(all, type, excluded, location));
    }
    return rules_.one_of(alternatives);
  }

  Symbol literals(const Conjunction& values, const Conjunction& all,
                  const SchemaLocation& location) {
    LiteralKeys excluded;
    for (const Json* value : exclusions_of(all, location)) excluded.insert(literal_key(*value));
    std::vector<Symbols> alternatives;
    for (const Json* value : values) {
      if (!excluded.empty() && excluded.contains(literal_key(*value))) continue;
      if (satisfies(*value, all, location)) alternatives.push_back(literal(*value));
    }
    if (alternatives.empty() && all.size() == 1)
      refuse_schema(location, "no value of enum satisfies the schema; expected at least one");
    return rules_.one_of(alternatives);
  }

  // Returns the text of a value; 1.0 may also be 1.
  Symbols literal(const Json& value) {
    const Symbols text = rules_.literal(tree_.text(value));
    if (!value.is_number_float() || type_of(value) != kIntegerType) return text;
    return {rules_.one_of({text, rules_.text(literal_key(value))})};
  }

  // `excluded`: literals that `not` excludes.
  Symbols of_type(const Conjunction& all, Types type, const Conjunction& excluded,
                  const SchemaLocation& location) {
    Conjunction without;
    for (const Json* value : excluded)
      if ((type_of(*value) & ((type & kNumberType) != 0 ? kNumberType : type)) != 0)
        without.push_back(value);
    if (type == kStringType) return string(all, without, location);
    if ((type & kNumberType) != 0) return {number(all, type == kIntegerType, without, location)};
    if (type == kNullType || type == kBooleanType) return constants(type, without);
    if (!without.empty())
      refuse_keyword(location, "not is not supported for an object or array as a constant");
    return type == kObjectType ? object_rule(all, parts_, location)
                               : array_rule(all, parts_, location);
  }

  Symbols constants(Types type, const Conjunction& without) {
    static const std::vector<Json> null = {nullptr}, booleans = {true, false};
    std::vector<Symbols> ways;
    for (const Json& value : type == kNullType ? null : booleans)
      if (std::ranges::none_of(without, [&](const Json* each) { return *each == value; }))
        ways.push_back(rules_.literal(value.dump()));
    return {rules_.one_of(ways)};
  }

  Symbol number(const Conjunction& all, bool whole, const Conjunction& without,
                const SchemaLocation& location) {
    const auto least = lower_bound(all, location), most = upper_bound(all, location);
    if (least && most && std::is_gt(compare_numbers(least->number, most->number)))
      refuse_schema(location,
                    "the lower bound is above the upper one; expected at most the upper bound");
    const Json* const step = only_value(all, "multipleOf", location);
    if (step == nullptr && !least && !most && without.empty())
      return whole ? rules_.integer() : rules_.number();
    if (step != nullptr && !step->is_number())
      refuse_schema(location, "multipleOf is not a number; expected one above 0");
    try {
      const auto decimals = step != nullptr ? decimals_of(step->dump()) : std::nullopt;
      if (step == nullptr || decimals)
        return between(least, most, whole ? 0 : decimals.value_or(NumberRanges::kAnyFraction),
                       without);
      if (!without.empty())
        fail(ErrorKind::Unsupported, "multipleOf cannot be combined with not and a number");
      return multiples_of(step->dump(), least, most, whole, grammar_, rules_);
    } catch (const Error& error) {
      fail(error.kind(), "{}: {}", text_of(location), error.what());
    }
  }

  // Returns the numbers between the bounds without some, which divide the range.
  Symbol between(std::optional<NumberBound> least, const std::optional<NumberBound>& most,
                 size_t fraction, const Conjunction& without) {
    std::vector<std::string> numbers;
    for (const Json* value : without) numbers.push_back(value->dump());
    std::ranges::sort(numbers, [](const std::string& a, const std::string& b) {
      return std::is_lt(compare_numbers(a, b));
    });
    std::vector<Symbols> ways;
    for (const std::string& number : numbers) {
      if (least && std::is_lt(compare_numbers(number, least->number))) continue;
      if (most && std::is_gt(compare_numbers(number, most->number))) break;
      const NumberBound bound = {number, true};
      ways.push_back({ranges_.between(least, bound, fraction)});
      least = bound;
    }
    ways.push_back({ranges_.between(least, most, fraction)});
    return rules_.one_of(ways);
  }

  // Returns the expression that `pattern`, or else `format`, requires of a string, or "". A format
  // is an annotation: with limits of the length it restricts nothing.
  static std::string expression(const Conjunction& all, bool limited,
                                const SchemaLocation& location) {
    if (const Json* const pattern = only_value(all, "pattern", location)) {
      if (!pattern->is_string())
        refuse_schema(location, "pattern is not a string; expected a regular expression");
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

  Symbols string(const Conjunction& all, const Conjunction& without,
                 const SchemaLocation& location) {
    const auto least = largest_count(all, "minLength", location),
               most = smallest_count(all, "maxLength", location);
    if (most && *most < least.value_or(0))
      refuse_schema(location, "maxLength is below minLength; expected at least minLength");
    const std::string pattern = expression(all, least || most, location);
    if (!without.empty()) {
      if (!pattern.empty() || least || most)
        refuse_keyword(location,
                       "not with a string cannot be combined with pattern, format and "
                       "limits of the length");
      std::vector<std::string> texts;
      for (const Json* value : without) texts.push_back(*value);
      return {other_strings(texts, grammar_)};
    }
    if (!pattern.empty()) return {matching(pattern, least.value_or(0), most, location)};
    if (!least && !most) return {rules_.string()};
    const Symbols one = {rules_.character()};
    return rules_.text("\"") + Symbols{rules_.repeated(one, one, least.value_or(0), most)} +
           rules_.text("\"");
  }

  // Returns the rule for a pattern with these lengths, once for all its uses.
  Symbol matching(const std::string& pattern, int64_t least, std::optional<int64_t> most,
                  const SchemaLocation& location) {
    const auto [known, added] = patterns_.try_emplace({pattern, least, most}, Symbol{});
    if (!added) return known->second;
    try {
      return known->second = strings_matching(pattern, least, most, grammar_);
    } catch (const Error& error) {
      fail(error.kind(), "{}: {}", text_of(location), error.what());
    }
  }

  Grammar& grammar_;
  JsonRules rules_;
  NumberRanges ranges_{grammar_, rules_};
  SchemaTree tree_;
  SchemaWork work_;
  SchemaWays ways_;
  SchemaRules parts_ = {
      grammar_,
      rules_,
      tree_,
      ways_,
      work_,
      [this](const Conjunction& all, const SchemaLocation& location) {
        return compile(all, location);
      },
      [this](const std::string& pattern, int64_t least, std::optional<int64_t> most,
             const SchemaLocation& location) { return matching(pattern, least, most, location); }};
  std::map<std::tuple<std::string, int64_t, std::optional<int64_t>>, Symbol> patterns_;
  std::map<Conjunction, Symbol> rules_of_;  // by schemas, sorted
  std::vector<Waiting> waiting_;
};

}  // namespace

const Json* only_value(const Conjunction& all, const char* key, const SchemaLocation& location) {
  const Json* only = nullptr;
  for (const Json* schema : all) {
    const Json* const found = find_key(*schema, key);
    if (found != nullptr && only != nullptr && *found != *only)
      refuse_keyword(location, fmt::format("{} has two values; expected one", key));
    if (found != nullptr) only = found;
  }
  return only;
}

SchemaGrammar schema_grammar(std::string_view schema, const Grammar::Bytes& usable) {
  auto grammar = std::make_shared<Grammar>(usable);
  const Symbol root = add_schema(schema, *grammar, Words::json);
  grammar->finish();
  return {std::move(grammar), root.index};
}

Grammar::Symbol add_schema(std::string_view schema, Grammar& grammar, Words words) {
  return SchemaCompiler(grammar, schema.empty() ? R"({"type": "object"})" : schema, words).root();
}

}  // namespace fovea::text
