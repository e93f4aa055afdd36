#include "search/conditions.h"

#include <algorithm>
#include <cctype>

#include "base/fields.h"
#include "base/json.h"
#include "fovea/core/excerpt.h"
#include "records/table.h"

namespace fovea::infer {
namespace {

constexpr const char *kFile = "file", *kDate = "date";

bool fits(std::string_view name, std::string_view pattern) {
  // Whether the pattern so far fits the first j characters of the name.
  std::vector<char> fits(name.size() + 1, 0);
  fits[0] = 1;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const bool across = pattern.substr(i).starts_with("**");
    if (pattern[i] == '*') {
      for (size_t j = 1; j <= name.size(); ++j)
        if (fits[j - 1] != 0 && (across || name[j - 1] != '/')) fits[j] = 1;
      if (across) ++i;
      continue;
    }
    for (size_t j = name.size(); j > 0; --j)
      fits[j] =
          fits[j - 1] != 0 && (pattern[i] == '?' ? name[j - 1] != '/' : name[j - 1] == pattern[i]);
    fits[0] = 0;
  }
  return fits[name.size()] != 0;
}

// Returns whether a text begins like "2026-01-31T23:59:59Z", as far as it goes.
bool is_date(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  constexpr size_t kSizes[] = {4, 7, 10, 13, 16, 19, 20};  // to the year, the month, ...
  if (std::ranges::count(kSizes, text.size()) == 0) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (kForm[i] == '0' ? !digit : text[i] != kForm[i]) return false;
  }
  return true;
}

int sign(int order) { return (order > 0) - (order < 0); }

// Compares two values as numbers if both are, else as texts.
int compare(const std::string& a, const std::string& b) {
  const auto x = text::finite_number(a), y = text::finite_number(b);
  if (x && y) return (*x > *y) - (*x < *y);
  return sign(a.compare(b));
}

std::optional<std::string> text_of(const nlohmann::json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end()) return std::nullopt;
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace

bool fits_pattern(std::string_view name, std::string_view pattern) {
  if (pattern.find('/') == pattern.npos && !pattern.starts_with("**"))
    if (const size_t folder = name.rfind('/'); folder != name.npos) name.remove_prefix(folder + 1);
  return fits(name, pattern);
}

Conditions::Conditions(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) all_.push_back(parse(text));
}

Conditions::Condition Conditions::parse(const std::string& text) {
  constexpr const char* kField = "where";
  const size_t at = text.find_first_of("=!<>");
  check_field(at != text.npos && at > 0 && (text[at] != '!' || text.substr(at).starts_with("!=")),
              kField, "{}; expected NAME=VALUE, or with !=, <, <=, > or >=", excerpt(text, 60));
  const bool two = text[at] != '=' && text.substr(at + 1).starts_with('=');
  Condition condition = {text.substr(0, at), text.substr(at + (two ? 2 : 1)), Comparison::equal};
  switch (text[at]) {
    case '!': condition.comparison = Comparison::unequal; break;
    case '<': condition.comparison = two ? Comparison::at_most : Comparison::less; break;
    case '>': condition.comparison = two ? Comparison::at_least : Comparison::greater; break;
    default: break;
  }
  const bool equality = condition.comparison <= Comparison::unequal;
  check_field(condition.name != kFile || equality, kField,
              "{}; expected file=PATTERN or !=", excerpt(text, 60));
  check_field(condition.name != kDate || is_date(condition.value), kField,
              "{}; expected the beginning of a date such as 2026-01-31T23:59:59Z",
              excerpt(text, 60));
  return condition;
}

bool Conditions::holds(Comparison comparison, int order) {
  switch (comparison) {
    case Comparison::equal: return order == 0;
    case Comparison::unequal: return order != 0;
    case Comparison::less: return order < 0;
    case Comparison::at_most: return order <= 0;
    case Comparison::greater: return order > 0;
    case Comparison::at_least: break;
  }
  return order >= 0;
}

// Compares as many characters of the date as the condition has.
bool Conditions::holds_for_date(const Condition& condition, const std::string& date) {
  if (date.size() < 4) return false;
  return holds(condition.comparison,
               date.substr(0, condition.value.size()).compare(condition.value));
}

std::vector<char> Conditions::fulfilled(const IndexPart& part) const {
  const PassageTable& table = part.table();
  const bool needs_fields =
      std::ranges::any_of(all_, [](const Condition& c) { return c.name != kFile; });
  // Of each file, and of each object of fields: whether it fulfils the conditions on it.
  std::vector<char> of_file, of_file_date, of_fields(1, 1), has_date(1, 0);
  for (const PassageTable::File& file : table.files()) {
    bool fits = true, in_time = true;
    for (const Condition& c : all_) {
      if (c.name == kFile)
        fits = fits && fits_pattern(file.name, c.value) == (c.comparison == Comparison::equal);
      if (c.name == kDate) in_time = in_time && holds_for_date(c, file.date);
    }
    of_file.push_back(fits);
    of_file_date.push_back(in_time);
  }
  if (needs_fields) {
    of_fields.clear();
    has_date.clear();
    for (const std::string& object : table.field_objects()) {
      const nlohmann::json fields = parse_json(object, "fields");
      bool fits = true;
      for (const Condition& c : all_) {
        const auto value = fields.is_object() ? text_of(fields, c.name) : std::nullopt;
        if (c.name == kDate)
          fits = fits && (!value || holds_for_date(c, *value));
        else if (c.name != kFile)
          fits = fits && value && holds(c.comparison, compare(*value, c.value));
      }
      of_fields.push_back(fits);
      has_date.push_back(fields.is_object() && fields.contains(kDate));
    }
  }
  std::vector<char> passes;
  for (int64_t i = 0; i < table.passages(); ++i) {
    const auto file = static_cast<size_t>(table.file(i)),
               fields = needs_fields ? static_cast<size_t>(table.fields(i)) : 0;
    passes.push_back(of_file[file] && of_fields[fields] &&
                     (has_date[fields] || of_file_date[file]));
  }
  return passes;
}

}  // namespace fovea::infer
