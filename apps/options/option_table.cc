#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/nearest.h"
#include "options/options.h"

namespace fovea::cli {
namespace {

bool is_place(const Option& option) { return option.kind == Kind::positional; }

// All accepted spellings: the name, the aliases, and both with '_' instead of inner '-'.
std::vector<std::string> spellings(const Option& option) {
  std::vector<std::string> all;
  if (!is_place(option)) all.push_back(option.name);
  all.insert(all.end(), option.aliases.begin(), option.aliases.end());
  const size_t plain = all.size();
  for (size_t i = 0; i < plain; ++i) {
    std::string other = all[i];
    if (other.rfind("--", 0) != 0) continue;
    std::replace(other.begin() + 2, other.end(), '-', '_');
    if (other != all[i]) all.push_back(other);
  }
  return all;
}

std::string long_form(const std::string& argument) {
  return argument.substr(0, argument.find('='));
}

void refuse_unknown(const std::vector<std::string>& rest, const std::vector<Option>& options) {
  std::vector<std::string> names;
  for (const Option& option : options) {
    for (const std::string& name : spellings(option)) names.push_back(name);
  }
  for (const std::string& argument : rest) {
    if (argument.size() < 2 || argument[0] != '-') continue;
    const std::string typed = long_form(argument);
    std::string near = typed.size() > 2 ? nearest(typed, names) : "";
    // For an alias, suggest the option's main name.
    for (const Option& option : options) {
      const auto all = spellings(option);
      const bool its = std::find(all.begin(), all.end(), near) != all.end();
      if (its && !is_place(option)) near = option.name;
    }
    const std::string hint = near.empty() ? "see --help" : "did you mean " + near + "?";
    throw UsageError(fmt::format("{}: unknown option; {}", typed, hint));
  }
  if (!rest.empty()) {
    throw UsageError(fmt::format("\"{}\": unexpected argument; see --help", rest.front()));
  }
}

// Declares an option to CLI11, which only collects strings; Option::set parses them.
CLI::Option* declare(CLI::App& app, const Option& option) {
  std::string names;
  if (is_place(option)) names = option.name;
  for (const std::string& name : spellings(option)) names += (names.empty() ? "" : ",") + name;
  if (option.kind == Kind::flag) {
    return app.add_flag(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  CLI::Option* declared = app.add_option(names, [](const CLI::results_t&) { return true; });
  declared->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  if (option.expected == "one or more") {
    declared->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();
  }
  if (option.most > 1) declared->expected(1, option.most)->allow_extra_args();
  return declared;
}

}  // namespace

void OptionTable::add(Option option) {
  option.section = section_;
  options_.push_back(std::move(option));
}

void OptionTable::add_config(Option option) {
  option.in_config = true;
  add(std::move(option));
}

Option* OptionTable::find(const std::string& name) {
  for (Option& option : options_) {
    const std::vector<std::string> all = spellings(option);
    if (option.name == name || std::find(all.begin(), all.end(), name) != all.end()) return &option;
  }
  return nullptr;
}

bool OptionTable::given(const std::string& name) const {
  for (const Option& option : options_) {
    if (option.name == name) return !option.given.empty();
  }
  throw std::logic_error("no option is named " + name);
}

void OptionTable::show_only(const std::vector<std::string>& names) {
  for (Option& option : options_)
    option.advanced = std::find(names.begin(), names.end(), option.name) == names.end();
}

void OptionTable::refuse_training(std::span<const char* const> names) const {
  for (const char* name : names) {
    if (given(name)) throw UsageError(fmt::format("{}: requires --train", name));
  }
}

void OptionTable::parse(const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<CLI::Option*> declared;
  for (const Option& option : options_) declared.push_back(declare(app, option));

  std::vector<std::string> reversed;  // CLI11 expects the last argument first
  for (const std::string& argument : arguments) {
    // CLI11 reads "--batch=" as "--batch" with its value in the next argument.
    const bool bare = argument.size() > 3 && argument.back() == '=' && find(long_form(argument));
    reversed.push_back(bare ? long_form(argument) : argument);
    if (bare) reversed.emplace_back();
  }
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::ArgumentMismatch&) {
    // Only the last argument can lack its value: any other one consumes the next argument.
    throw UsageError(fmt::format("{}: the value is missing", arguments.back()));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  refuse_unknown(app.remaining(), options_);
  for (size_t i = 0; i < options_.size(); ++i) options_[i].given = declared[i]->results();
}

void OptionTable::apply(const std::string& name) {
  Option* const option = find(name);
  for (const std::string& value : option->given) option->set(value);
}

void OptionTable::apply() {
  for (const Option& option : options_) {
    for (const std::string& value : option.given) option.set(value);
  }
}

std::string table_json(const OptionTable& table) {
  static const char* const kinds[] = {"flag",   "boolean", "integer", "number",    "bytes",
                                      "choice", "text",    "list",    "positional"};
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Option& option : table.all()) {
    all.push_back({{"name", option.name},
                   {"aliases", option.aliases},
                   {"kind", kinds[static_cast<int>(option.kind)]},
                   {"expected", option.expected},
                   {"of_spec", option.of_spec},
                   {"default", option.initial},
                   {"help", option.help}});
  }
  return all.dump();
}

}  // namespace fovea::cli
