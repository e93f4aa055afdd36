#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>

#include "grammar/schema_rules.h"

namespace fovea::text {
namespace {

using Json = SchemaTree::Json;
using Symbol = Grammar::Symbol;
using Symbols = Grammar::Sequence;

constexpr size_t kMostUnique = 8;  // values of an array of unique items, whose subsets are states
constexpr int64_t kMostCounted = 1000;

class ArrayRules {
 public:
  explicit ArrayRules(SchemaRules& schema) : schema_(schema) {}

  // The items of an array: those at the first indices, and the others.
  struct Items {
    std::vector<Conjunction> first;
    Conjunction others;
    bool more;  // others may be generated
  };

  // In drafts before 2020-12, `items` may be an array, followed by additionalItems.
  static Items items_of(const Conjunction& all, const SchemaLocation& location) {
    Items items = {{}, {}, true};
    std::vector<std::pair<const Json*, const Json*>> parts;  // first, others
    size_t size = 0;
    for (const Json* schema : all) {
      const Json *first = find_key(*schema, "prefixItems"), *others = find_key(*schema, "items");
      if (first == nullptr && others != nullptr && others->is_array())
        first = others, others = find_key(*schema, "additionalItems");
      if (first != nullptr && !first->is_array())
        refuse_schema(location, "prefixItems is invalid; expected an array of schemas");
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
  Symbols array(const Conjunction& all, const SchemaLocation& location) {
    const Items items = items_of(all, location);
    const auto size = static_cast<int64_t>(items.first.size());
    const auto given = largest_count(all, "minItems", location);
    auto most = smallest_count(all, "maxItems", location);
    if (!items.more) most = std::min(size, most.value_or(size));
    const int64_t least = given.value_or(std::min(size, most.value_or(size)));
    if (most && *most < least)
      refuse_schema(location,
                    "minItems is above maxItems or the number of items; expected at most it");
    const bool is_unique_list = is_unique(all, location) && most.value_or(2) > 1;
    if (const auto contained = contained_in(all, location)) {
      if (is_unique_list || size > 0)
        refuse_keyword(location, "contains cannot be combined with uniqueItems and prefixItems");
      return containing(items, *contained, least, most, location);
    }
    if (is_unique_list) return unique(items, least, most, location);
    if (size > 0) return tuple(items, least, most, location);
    if (!items.more) return rules().text("[]");
    const Symbol item = schema_.compile(items.others, {&location, "items"});
    return rules().list('[', {item}, least, most, ']');
  }

  struct Contained {
    const Json* item;
    int64_t least;
  };

  // Returns what `contains` requires; unset if no schema has it.
  static std::optional<Contained> contained_in(const Conjunction& all,
                                               const SchemaLocation& location) {
    const Json* const item = only_value(all, "contains", location);
    if (item == nullptr) return std::nullopt;
    if (only_value(all, "maxContains", location) != nullptr)
      refuse_keyword(location, "maxContains is not supported; expected contains with minContains");
    int64_t least = 0;
    for (const Json* schema : all)
      if (schema->contains("contains"))
        least = std::max(least, largest_count({schema}, "minContains", location).value_or(1));
    return least > 0 ? std::optional(Contained{item, least}) : std::nullopt;
  }

  // Returns an array with at least as many of the contained items. Built from the end:
  // next[n] is what may follow the first i items if n of them are contained ones; after the last i,
  // the number of items changes nothing more.
  Symbols containing(const Items& items, const Contained& contained, int64_t least,
                     std::optional<int64_t> most, const SchemaLocation& location) {
    const int64_t length = most.value_or(std::max(least, contained.least));
    if (length * contained.least > kMostCounted)
      refuse_keyword(location,
                     fmt::format("contains is supported if maxItems times minContains is at "
                                 "most {}",
                                 kMostCounted));
    Conjunction both = items.others;
    both.push_back(contained.item);
    const Symbol any = schema_.compile(items.others, {&location, "items"}),
                 one = schema_.compile(both, {&location, "contains"});
    const Symbols comma = rules().text(",") + Symbols{rules().space()};
    const auto wanted = static_cast<size_t>(contained.least);
    const auto way = [&](int64_t before, Symbol item, Symbol rest) {
      return (before > 0 ? comma : Symbols{rules().space()}) + Symbols{item, rest};
    };
    const Symbol close = rules().one_of({Symbols{rules().space()} + rules().text("]")});
    std::vector<Symbol> next;
    for (size_t n = 0; n <= wanted; ++n) next.push_back(rules().rule());
    for (size_t n = 0; n <= wanted; ++n) {
      std::vector<Symbols> ways;
      if (n == wanted) ways.push_back({close});
      if (!most) ways.push_back(way(1, any, next[n]));
      if (!most && n < wanted) ways.push_back(way(1, one, next[n + 1]));
      rules().add(next[n], ways);
    }
    for (int64_t i = length; i-- > 0;) {
      std::vector<Symbol> from;
      for (size_t n = 0; n <= wanted; ++n) {
        std::vector<Symbols> ways = {way(i, any, next[n])};
        if (n < wanted) ways.push_back(way(i, one, next[n + 1]));
        if (n == wanted && i >= least) ways.push_back({close});
        from.push_back(rules().one_of(ways));
      }
      next = std::move(from);
    }
    return rules().text("[") + Symbols{next[0]};
  }

  // Built from the end: `rest` is what may follow the first i items.
  Symbols tuple(const Items& items, int64_t least, std::optional<int64_t> most,
                const SchemaLocation& location) {
    const SchemaLocation of_items{&location, "prefixItems"};
    const auto size = static_cast<int64_t>(items.first.size());
    const Symbols comma = rules().text(",") + Symbols{rules().space()};
    Symbols rest = rules().text("]");
    if (items.more && most.value_or(size + 1) > size) {
      const Symbols next = comma + Symbols{schema_.compile(items.others, {&location, "items"})};
      const auto more = most ? std::optional(*most - size) : std::nullopt;
      rest = Symbols{rules().repeated(next, next, std::max<int64_t>(0, least - size), more)} + rest;
    }
    for (int64_t i = std::min(size, most.value_or(size)); i-- > 0;) {
      const std::string number = std::to_string(i);
      Symbols with = i > 0 ? comma : Symbols{};
      with.push_back(schema_.compile(items.first[static_cast<size_t>(i)], {&of_items, number}));
      with = std::move(with) + rest;
      std::vector<Symbols> ways = {with};
      if (i >= least) ways.push_back(rules().text("]"));
      rest = {rules().one_of(ways)};
    }
    return rules().text("[") + rest;
  }

  static bool is_unique(const Conjunction& all, const SchemaLocation& location) {
    return std::ranges::any_of(all, [&](const Json* schema) {
      const Json* const unique = find_key(*schema, "uniqueItems");
      if (unique != nullptr && !unique->is_boolean())
        refuse_schema(location, "uniqueItems is invalid; expected true or false");
      return unique != nullptr && *unique == true;
    });
  }

  // Returns an array of different values of a short enum: a rule for each set of values that the
  // array has already.
  Symbols unique(const Items& items, int64_t least, std::optional<int64_t> most,
                 const SchemaLocation& location) {
    const auto alternatives =
        items.first.empty() ? schema_.ways.of(items.others, location) : std::vector<Conjunction>{};
    const auto values = alternatives.size() == 1
                            ? literals_of(alternatives[0], schema_.work, location)
                            : std::nullopt;
    if (!values || values->size() > kMostUnique)
      refuse_keyword(location,
                     fmt::format("uniqueItems is supported for items of an enum of at most "
                                 "{} values",
                                 kMostUnique));
    std::vector<Symbols> texts;
    for (size_t i = 0; i < values->size(); ++i) {
      const Json& value = *(*values)[i];
      const bool repeated = std::any_of(values->begin(), values->begin() + static_cast<long>(i),
                                        [&](const Json* other) { return *other == value; });
      if (!repeated && satisfies(value, alternatives[0], location))
        texts.push_back(rules().literal(schema_.tree.text(value)));
    }
    std::vector<Symbol> after(size_t{1} << texts.size());  // by set
    for (size_t set = after.size(); set-- > 0;) {
      const auto size = static_cast<int64_t>(std::popcount(set));
      std::vector<Symbols> next;
      if (size >= least) next.push_back(rules().text("]"));
      for (size_t i = 0; i < texts.size() && size < most.value_or(size + 1); ++i) {
        if ((set >> i & 1) != 0) continue;
        const Symbols comma = size > 0 ? rules().text(",") + Symbols{rules().space()} : Symbols{};
        next.push_back(comma + texts[i] + Symbols{after[set | size_t{1} << i]});
      }
      after[set] = rules().one_of(next);
    }
    return rules().text("[") + Symbols{after[0]};
  }

 private:
  JsonRules& rules() { return schema_.rules; }
  SchemaRules& schema_;
};

}  // namespace

Symbols array_rule(const Conjunction& all, SchemaRules& schema, const SchemaLocation& location) {
  return ArrayRules(schema).array(all, location);
}

}  // namespace fovea::text
