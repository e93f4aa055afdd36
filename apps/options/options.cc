#include "options/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/fields.h"
#include "base/nearest.h"
#include "fovea/core/machine.h"

namespace fovea::cli {
namespace {

using Names = std::vector<std::string>;

[[noreturn]] void refuse(const std::string& name, const std::string& value,
                         const std::string& wrong, const std::string& expected) {
  throw UsageError(fmt::format("{}: \"{}\" {}; expected {}", name, value, wrong, expected));
}

const char* placeholder(Kind kind) {
  switch (kind) {
    case Kind::boolean: return "[true|false]";
    case Kind::integer: return "N";
    case Kind::number: return "X";
    case Kind::bytes: return "SIZE";
    case Kind::choice: return "NAME";
    case Kind::text:
    case Kind::list: return "TEXT";
    case Kind::flag:
    case Kind::positional: return "";
  }
  return "";
}

Option make(std::string name, Names aliases, std::string help, Kind kind, std::string expected) {
  Option option;
  option.name = std::move(name);
  option.aliases = std::move(aliases);
  option.help = std::move(help);
  option.kind = kind;
  option.placeholder = placeholder(kind);
  option.expected = std::move(expected);
  return option;
}

Option finish(Option option) {
  option.initial = option.get();
  return option;
}

// Returns the power of 1000 of a unit, k, M, B, G or T, or 0 for another text.
double thousands(std::string_view unit) {
  static const std::map<std::string_view, double> units = {
      {"k", 1e3}, {"K", 1e3}, {"m", 1e6}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}, {"T", 1e12}};
  const auto found = units.find(unit);
  return found == units.end() ? 0 : found->second;
}

// Reads "10k" or "1.5M" as a whole number; unset for any other text.
std::optional<int64_t> with_unit(const std::string& value) {
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  const double whole = std::round(number * thousands({stop, end}));
  constexpr double kMost = 9e15;  // exact in a double
  const bool exact = std::abs(whole - number * thousands({stop, end})) < 1e-6;
  if (thousands({stop, end}) == 0 || !exact || std::abs(whole) > kMost) return std::nullopt;
  return static_cast<int64_t>(whole);
}

int64_t parse_integer(const std::string& name, const std::string& value, int64_t least,
                      int64_t most, const std::string& expected) {
  int64_t result = 0;
  const char* const end = value.data() + value.size();
  auto [stop, error] = std::from_chars(value.data(), end, result);
  if (const auto counted = with_unit(value)) {
    result = *counted;
    stop = end;
  }
  if (stop != end || error == std::errc::invalid_argument) {
    refuse(name, value, "is not a whole number", expected);
  }
  if (error != std::errc() || result < least || result > most) {
    refuse(name, value, "is out of range", expected);
  }
  return result;
}

double parse_number(const std::string& name, const std::string& value, double least, double most,
                    const std::string& expected) {
  double result = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, result);
  if (stop != end || error == std::errc::invalid_argument || std::isnan(result)) {
    refuse(name, value, "is not a number", expected);
  }
  if (error != std::errc() || result < least || result > most) {
    refuse(name, value, "is out of range", expected);
  }
  return result;
}

std::optional<bool> find_boolean(std::string value) {
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* word : {"true", "1", "on", "yes", "enabled"}) {
    if (value == word) return true;
  }
  for (const char* word : {"false", "0", "off", "no", "disabled"}) {
    if (value == word) return false;
  }
  return std::nullopt;
}

bool parse_boolean(const std::string& name, const std::string& value) {
  const std::optional<bool> found = find_boolean(value);
  if (!found) refuse(name, value, "is neither true nor false", "true or false");
  return *found;
}

uint64_t parse_bytes(const std::string& name, const std::string& value,
                     const std::string& expected) {
  uint64_t count = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, count);
  if (error == std::errc::invalid_argument) refuse(name, value, "is not a size", expected);
  std::string unit(stop, end);
  for (char& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  int shift = 0;
  if (!unit.empty() && unit != "B") {
    const size_t power = std::string("KMGT").find(unit[0]);
    const std::string rest = unit.substr(1);
    if (power == std::string::npos || (!rest.empty() && rest != "B" && rest != "IB")) {
      refuse(name, value, "is not a size", expected);
    }
    shift = 10 * (static_cast<int>(power) + 1);
  }
  // The limit of 2^62 bytes keeps sums of sizes from overflowing.
  if (error != std::errc() || count > (uint64_t{1} << 62) >> shift) {
    refuse(name, value, "is out of range", expected);
  }
  return count << shift;
}

Names split_bars(const std::string& name) {
  Names parts(1);
  for (const char c : name) {
    if (c == '|') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string join(const Names& words, const std::string& between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

Option words(Option option, std::vector<std::string>& values) {
  option.set = [&values](const std::string& typed) { values.push_back(typed); };
  option.get = [&values] { return join(values, " "); };
  return finish(std::move(option));
}

// Returns an option of values separated by commas; `parse` converts one of them.
template <class Number, class Parse>
Option listed(std::string name, Names aliases, std::string help, std::vector<Number>& values,
              const std::string& range, const char* placeholder, const Parse& parse) {
  Option option = make(std::move(name), std::move(aliases), std::move(help), Kind::text,
                       range + ", or several, separated by commas");
  option.placeholder = placeholder;
  option.set = [=, &values, title = option.name,
                expected = option.expected](const std::string& typed) {
    std::vector<Number> read;
    for (size_t begin = 0, end = 0; begin <= typed.size(); begin = end + 1) {
      end = std::min(typed.find(',', begin), typed.size());
      read.push_back(parse(title, typed.substr(begin, end - begin), expected));
    }
    values = std::move(read);
  };
  option.get = [&values] { return fmt::format("{}", fmt::join(values, ",")); };
  return finish(std::move(option));
}

}  // namespace

Option boolean(std::string name, Names aliases, std::string help, bool& value) {
  Option option =
      make(std::move(name), std::move(aliases), std::move(help), Kind::boolean, "true or false");
  option.implied = "true";
  option.set = [&value, title = option.name](const std::string& typed) {
    value = parse_boolean(title, typed);
  };
  option.get = [&value] { return std::string(value ? "true" : "false"); };
  return finish(std::move(option));
}

Option flag(std::string name, Names aliases, std::string help, bool& value) {
  Option option = boolean(std::move(name), std::move(aliases), std::move(help), value);
  if (value) return option;  // "--nesterov false" turns off a flag that is on by default
  option.kind = Kind::flag;
  option.placeholder = placeholder(option.kind);
  option.expected = "no value";
  option.implied.clear();
  return option;
}

bool is_boolean(const std::string& text) { return find_boolean(text).has_value(); }

Option integer(std::string name, Names aliases, std::string help, int64_t& value, int64_t least,
               int64_t most) {
  Option option = make(std::move(name), std::move(aliases), std::move(help), Kind::integer,
                       range_text(least, most));
  option.set = [=, &value, title = option.name,
                expected = option.expected](const std::string& typed) {
    value = parse_integer(title, typed, least, most, expected);
  };
  option.get = [&value] { return fmt::format("{}", value); };
  return finish(std::move(option));
}

Option integers(std::string name, Names aliases, std::string help, std::vector<int64_t>& values,
                int64_t least, int64_t most) {
  return listed(
      std::move(name), std::move(aliases), std::move(help), values, range_text(least, most),
      "N,...",
      [=](const std::string& title, const std::string& typed, const std::string& expected) {
        return parse_integer(title, typed, least, most, expected);
      });
}

Option numbers(std::string name, Names aliases, std::string help, std::vector<double>& values,
               double least, double most) {
  return listed(
      std::move(name), std::move(aliases), std::move(help), values, range_text(least, most),
      "X,...",
      [=](const std::string& title, const std::string& typed, const std::string& expected) {
        return parse_number(title, typed, least, most, expected);
      });
}

Option number(std::string name, Names aliases, std::string help, double& value, double least,
              double most) {
  Option option = make(std::move(name), std::move(aliases), std::move(help), Kind::number,
                       range_text(least, most));
  option.set = [=, &value, title = option.name,
                expected = option.expected](const std::string& typed) {
    value = parse_number(title, typed, least, most, expected);
  };
  option.get = [&value] { return fmt::format("{}", value); };
  return finish(std::move(option));
}

Option bytes(std::string name, Names aliases, std::string help, uint64_t& value) {
  Option option = make(std::move(name), std::move(aliases), std::move(help), Kind::bytes,
                       "a size such as 300000000, 512M or 2GB");
  option.set = [&value, title = option.name, expected = option.expected](const std::string& typed) {
    value = parse_bytes(title, typed, expected);
  };
  option.get = [&value] { return fmt::format("{}", value); };
  return finish(std::move(option));
}

Option choice(std::string name, Names aliases, std::string help, int& value, const Names& names) {
  std::vector<Names> spellings;
  Names first;
  for (const std::string& each : names) {
    spellings.push_back(split_bars(each));
    first.push_back(spellings.back().front());
  }
  Option option =
      make(std::move(name), std::move(aliases), std::move(help), Kind::choice, join(first, ", "));
  option.set = [=, &value, title = option.name,
                expected = option.expected](const std::string& typed) {
    for (size_t i = 0; i < spellings.size(); ++i) {
      if (std::find(spellings[i].begin(), spellings[i].end(), typed) == spellings[i].end())
        continue;
      value = static_cast<int>(i);
      return;
    }
    const std::string near = nearest(typed, first);
    refuse(title, typed, near.empty() ? "is unknown" : "is unknown (did you mean " + near + "?)",
           "one of " + expected);
  };
  option.get = [&value, first] { return first.at(static_cast<size_t>(value)); };
  return finish(std::move(option));
}

Option text(std::string name, Names aliases, std::string help, std::string& value) {
  Option option = make(std::move(name), std::move(aliases), std::move(help), Kind::text, "text");
  option.set = [&value](const std::string& typed) { value = typed; };
  option.get = [&value] { return value; };
  return finish(std::move(option));
}

Option list(std::string name, Names aliases, std::string help, std::vector<std::string>& values) {
  return words(make(std::move(name), std::move(aliases), std::move(help), Kind::list, "text"),
               values);
}

Option files(std::string name, Names aliases, std::string help, std::vector<std::string>& values,
             int most) {
  Option option = list(std::move(name), std::move(aliases), std::move(help), values);
  option.most = most;
  return option;
}

Option as(std::string placeholder, Option option) {
  option.placeholder = std::move(placeholder);
  return option;
}

Option with_words(const Names& values, Option option) {
  if (values.empty()) return option;
  option.set = [values, set = std::move(option.set)](const std::string& typed) {
    const auto named = std::find_if(values.begin(), values.end(), [&](const std::string& value) {
      return value.substr(value.find('|') + 1) == typed;
    });
    set(named == values.end() ? typed : named->substr(0, named->find('|')));
  };
  return option;
}

Option positional(std::string name, Names aliases, std::string help, std::string& value) {
  Option option = text(std::move(name), std::move(aliases), std::move(help), value);
  option.kind = Kind::positional;
  option.placeholder = placeholder(option.kind);
  option.expected = "one";
  return option;
}

Option positionals(std::string name, Names aliases, std::string help,
                   std::vector<std::string>& values) {
  return words(
      make(std::move(name), std::move(aliases), std::move(help), Kind::positional, "one or more"),
      values);
}

nlohmann::ordered_json decisive_options(const OptionTable& table,
                                        const std::vector<std::string>& indifferent) {
  nlohmann::ordered_json options;
  options["version"] = version();
  for (const Option& option : table.all()) {
    const bool none =
        std::find(indifferent.begin(), indifferent.end(), option.name) != indifferent.end();
    if (option.kind != Kind::positional && !none && table.given(option.name))
      options[option.name] = option.get();
  }
  return options;
}

}  // namespace fovea::cli
