#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "grammar/grammar_automaton.h"
#include "grammar/json_strings.h"
#include "grammar/schema_rules.h"

namespace fovea::text {
namespace {

using Json = SchemaTree::Json;
using Symbol = Grammar::Symbol;
using Symbols = Grammar::Sequence;

constexpr size_t kStepsOfMatcher = 100;  // to compile a character of its pattern

// Decides whether a regular expression of JSON Schema matches a text.
class TextMatcher {
 public:
  // Errors of the expression begin with the location.
  TextMatcher(const std::string& pattern, const SchemaLocation& location) {
    auto grammar = std::make_shared<Grammar>(Grammar::Bytes().set());
    try {
      const int32_t root = strings_matching(pattern, 0, std::nullopt, *grammar).index;
      grammar->finish();
      automaton_.emplace(std::move(grammar), root);
    } catch (const Error& error) {
      fail(error.kind(), "{}: {}", text_of(location), error.what());
    }
  }

  bool matches(std::string_view text) {
    int32_t state = automaton_->start();
    for (const char c : nlohmann::json(text).dump()) {
      state = automaton_->step(state, static_cast<uint8_t>(c));
      if (state == GrammarAutomaton::kDead) return false;
    }
    return automaton_->accepts(state);
  }

 private:
  std::optional<GrammarAutomaton> automaton_;
};

class ObjectRules {
 public:
  explicit ObjectRules(SchemaRules& schema) : schema_(schema) {}

  struct Property {
    Symbols pair;
    bool required;
  };

  Symbols object(const Conjunction& all, const SchemaLocation& location) {
    const int64_t least = largest_count(all, "minProperties", location).value_or(0);
    const auto most = smallest_count(all, "maxProperties", location);
    if (most && *most < least)
      refuse_schema(location, "maxProperties is below minProperties; expected at least it");
    std::vector<PropertyName> names = names_of(all, schema_.tree, location);
    const Json* const names_schema = only_value(all, "propertyNames", location);
    const bool listed = names_schema != nullptr && add_names(*names_schema, names, location);
    const Json* const patterns = only_value(all, "patternProperties", location);
    if (patterns != nullptr && !patterns->is_object())
      refuse_schema(location, "patternProperties is not an object; expected an object of schemas");
    if (names.empty()) return map(all, names_schema, patterns, least, most, location);
    if (names_schema != nullptr && (!listed || patterns != nullptr))
      refuse_keyword(location,
                     "propertyNames cannot be combined with named properties or "
                     "patternProperties; expected only one of them");
    const Matches matches = matching_names(names, patterns, location);
    const std::vector<Property> found = properties(names, matches, all, location);
    if (least > std::ssize(found))
      refuse_schema(location,
                    "minProperties is above the number of properties; expected at most it");
    if (listed || least > 0 || most) return members(found, least, most, {});
    return members(found, 0, most, other_pair(names, matches, patterns, all, location));
  }

  using Matches = std::map<std::string_view, Conjunction>;  // by name: the schemas of patterns

  Matches matching_names(const std::vector<PropertyName>& names, const Json* patterns,
                         const SchemaLocation& location) {
    Matches matches;
    if (patterns == nullptr) return matches;
    for (const auto& [pattern, value] : patterns->items()) {
      schema_.work.add(kStepsOfMatcher * (1 + pattern.size()), location);
      TextMatcher matcher(pattern, location);
      for (const PropertyName& each : names) {
        schema_.work.add(each.name.size(), location);
        if (matcher.matches(each.name)) matches[each.name].push_back(&value);
      }
    }
    return matches;
  }

  // Returns a pair with another name, which may follow the named ones: one that the only pattern
  // matches, or any if additionalProperties is given. Empty if only named ones are generated.
  Symbols other_pair(const std::vector<PropertyName>& names, const Matches& matches,
                     const Json* patterns, const Conjunction& all, const SchemaLocation& location) {
    constexpr size_t kMostLetters = 1000;  // each letter of a name that is excluded is a rule
    if (patterns != nullptr) {
      if (patterns->size() != 1 || !matches.empty()) return {};
      return pair(pattern_key(*patterns, location), pattern_value(*patterns, all), location);
    }
    std::vector<std::string> texts;
    size_t letters = 0;
    for (const PropertyName& each : names) {
      texts.emplace_back(each.name);
      letters += each.name.size();
    }
    if (!names_others(all) || letters > kMostLetters) return {};
    return pair(other_strings(texts, schema_.grammar), other_values(all), location);
  }

  // Returns a pair of a name and a value; empty if no value satisfies the schemas.
  Symbols pair(Symbol key, const Conjunction& value, const SchemaLocation& location) {
    if (std::ranges::any_of(value, [](const Json* each) { return *each == false; })) return {};
    const Symbol each = schema_.compile(value, {&location, "additionalProperties"});
    return Symbols{key} + rules().text(":") + Symbols{rules().space(), each};
  }

  Symbol pattern_key(const Json& patterns, const SchemaLocation& location) {
    return schema_.matching(patterns.begin().key(), 0, std::nullopt, location);
  }

  static Conjunction pattern_value(const Json& patterns, const Conjunction& all) {
    return value_of(all, "", {&patterns.begin().value()});
  }

  // Adds the names of a schema of names that lists them. Returns whether it does.
  bool add_names(const Json& schema, std::vector<PropertyName>& names,
                 const SchemaLocation& location) {
    const std::vector<Conjunction> alternatives = schema_.ways.of({&schema}, location);
    const auto values = alternatives.size() == 1
                            ? literals_of(alternatives[0], schema_.work, location)
                            : std::nullopt;
    if (!values) return false;
    if (values->size() > kMostProperties)
      refuse_schema(location, fmt::format("propertyNames has {} names; expected at most {}",
                                          values->size(), kMostProperties));
    std::set<std::string_view> listed, known;
    for (const Json* value : *values)
      if (value->is_string()) listed.insert(value->get_ref<const std::string&>());
    for (const PropertyName& each : names)
      if (known.insert(each.name); !listed.contains(each.name))
        refuse_keyword(location, "propertyNames lacks a named property; expected all of them");
    for (const Json* value : *values) {
      if (!value->is_string() || !satisfies(*value, alternatives[0], location)) continue;
      const std::string_view name = value->get_ref<const std::string&>();
      if (known.insert(name).second) names.push_back({name, false});
    }
    return true;
  }

  // Returns an object of any names, or those that a schema or a pattern describes.
  Symbols map(const Conjunction& all, const Json* names, const Json* patterns, int64_t least,
              std::optional<int64_t> most, const SchemaLocation& location) {
    static const Json text = {{"type", "string"}};
    Conjunction value = value_of(all, "");
    Symbol key = rules().string();
    if (names != nullptr) key = schema_.compile({&text, names}, {&location, "propertyNames"});
    if (patterns != nullptr) {
      if (names != nullptr || patterns->size() != 1)
        refuse_keyword(location,
                       "patternProperties is supported with one pattern, without "
                       "propertyNames");
      value = pattern_value(*patterns, all);
      key = pattern_key(*patterns, location);
    }
    const Symbols each = most == 0 ? Symbols{} : pair(key, value, location);
    if (each.empty() && least > 0)
      refuse_schema(location,
                    "minProperties is above 0 for an object without properties; expected 0");
    return each.empty() ? rules().text("{}") : rules().list('{', each, least, most, '}');
  }

  // Returns the properties that an object may have; those that no value satisfies are omitted.
  std::vector<Property> properties(const std::vector<PropertyName>& names, const Matches& matches,
                                   const Conjunction& all, const SchemaLocation& location) {
    std::vector<Property> found;
    for (const auto& [name, required] : names) {
      schema_.work.add(all.size(), location);
      const auto matching = matches.find(name);
      const Conjunction value =
          value_of(all, name, matching != matches.end() ? matching->second : Conjunction{});
      const bool never =
          std::ranges::any_of(value, [](const Json* each) { return *each == false; });
      if (never && required)
        refuse_schema(location,
                      "required contains a name that additionalProperties forbids; expected names "
                      "in properties");
      if (never) continue;
      found.push_back({rules().text(Json(name).dump() + ":") +
                           Symbols{rules().space(), schema_.compile(value, {&location, name})},
                       required});
    }
    return found;
  }

  // Returns the properties in their order; those that are not required may be omitted. Built from
  // the end: next[n] is what may follow the first i properties if n of them are present. Above the
  // limits, further properties do not change the number. `other`: a pair that may follow the named
  // ones any number of times, if neither limit is given; or empty.
  Symbols members(const std::vector<Property>& all, int64_t least, std::optional<int64_t> most,
                  const Symbols& other) {
    const auto size = std::ssize(all);
    const int64_t limit = std::min<int64_t>(most.value_or(size), size);
    const int64_t states = std::max({int64_t{1}, least, limit < size ? limit : 0}) + 1;
    const Symbol close = rules().one_of({Symbols{rules().space()} + rules().text("}")});
    std::vector<Symbol> next(static_cast<size_t>(states), close);
    std::fill_n(next.begin(), least, rules().one_of({}));
    if (!other.empty()) {
      const Symbols pair = Symbols{rules().space()} + other;
      const Symbol more = rules().rule();
      rules().add(more, {{close}, rules().text(",") + pair + Symbols{more}});
      next = {rules().one_of({{close}, pair + Symbols{more}}), more};
    }
    for (int64_t i = size; i-- > 0;) {
      const auto& [pair, required] = all[static_cast<size_t>(i)];
      std::vector<Symbol> from;
      for (int64_t n = 0; n < std::min(states, i + 2); ++n) {
        std::vector<Symbols> options;
        const Symbols before =
            (n > 0 ? rules().text(",") : Symbols{}) + Symbols{rules().space()} + pair;
        if (limit == size || n < limit)
          options.push_back(before +
                            Symbols{next[static_cast<size_t>(std::min(n + 1, states - 1))]});
        if (!required) options.push_back({next[static_cast<size_t>(n)]});
        from.push_back(rules().one_of(options));
      }
      from.resize(static_cast<size_t>(states), from.back());
      next = std::move(from);
    }
    return rules().text("{") + Symbols{next[0]};
  }

 private:
  JsonRules& rules() { return schema_.rules; }
  SchemaRules& schema_;
};

}  // namespace

Symbols object_rule(const Conjunction& all, SchemaRules& schema, const SchemaLocation& location) {
  return ObjectRules(schema).object(all, location);
}

}  // namespace fovea::text
