#include "options/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/nearest.h"
#include "base/ordered_json.h"
#include "fovea/text/text_lines.h"
#include "options/yaml.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kConfigBytes = 1 << 20;  // far above the size of any Spec

// Returns the name of an option in files: "batch_size"; empty if files cannot set it.
std::string key_of(const Option& option) {
  std::string name = option.name;
  if (option.kind == Kind::positional) {
    const auto alias = std::find_if(option.aliases.begin(), option.aliases.end(),
                                    [](const std::string& each) { return each.size() > 2; });
    if (alias == option.aliases.end()) return "";
    name = *alias;
  }
  name.erase(0, 2);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// The options that concern a single call of the program.
bool is_of_one_call(const Option& option) {
  for (const char* name : {"--help", "--help-all", "--config", "--dump-config"})
    if (option.name == name) return true;
  return false;
}

bool is_list(const Option& option) {
  return option.kind == Kind::list || option.most > 1 || option.expected == "one or more";
}

std::string text_of_value(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Returns "FOVEA_BATCH_SIZE" for --batch-size. Of the positional arguments, only MODEL has one.
std::string variable_of(const Option& option) {
  if (option.kind == Kind::positional && option.name != "MODEL") return "";
  std::string name = "FOVEA_" + key_of(option);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace

std::vector<std::string>& config_sections() {
  static std::vector<std::string> names;
  return names;
}

Json read_config(const std::string& path) {
  const std::string content = text::read_text(path, kConfigBytes);
  const size_t first = content.find_first_not_of(" \t\r\n");
  Json config;
  try {
    const bool json = first != content.npos && content[first] == '{';
    config = json ? parse_ordered_json(content, path) : parse_yaml(content, path);
  } catch (const JsonFault& fault) {
    throw UsageError(fault.what() +
                     std::string("; expected options, as --dump-config prints them"));
  }
  if (config.is_object()) return config;
  throw UsageError(path +
                   ": not an object; expected options by verb, as --dump-config prints them");
}

Json without_sections(Json config) {
  for (const std::string& name : config_sections()) config.erase(name);
  return config;
}

ConfigValues config_values(const std::string& path, const std::string& verb, const Json& values,
                           const OptionTable& table,
                           const std::function<bool(const Option&)>& allowed) {
  if (!values.is_object())
    throw UsageError(fmt::format("{}: \"{}\" is not an object; expected options", path, verb));
  std::vector<std::string> keys;
  for (const Option& option : table.all())
    if (allowed(option)) keys.push_back(key_of(option));
  ConfigValues found;
  for (const auto& [key, value] : values.items()) {
    const Option* const option = table.find(option_name(key));
    if (option == nullptr || !allowed(*option)) {
      const std::string near = nearest(key, keys);
      throw UsageError(
          fmt::format("{}: {}.{}: unknown key; {}", path, verb, key,
                      near.empty() ? "see --dump-config" : "did you mean " + near + "?"));
    }
    std::vector<std::string> texts;
    for (const Json& each : value.is_array() ? value : Json::array({value}))
      texts.push_back(text_of_value(each));
    if (!is_list(*option) && texts.size() != 1)
      texts = {fmt::format("{}", fmt::join(texts, ","))};  // such as --ids 5,9,2
    found.emplace_back(option, std::move(texts));
  }
  return found;
}

void take_environment(OptionTable& table) {
  for (const Option& option : table.all()) {
    const std::string name =
        is_of_one_call(option) && option.name != "--config" ? "" : variable_of(option);
    const char* const value = name.empty() ? nullptr : std::getenv(name.c_str());
    if (value != nullptr && *value != 0) table.give(option.name, {value}, name);
  }
}

void take_config(OptionTable& table, const std::string& verb) {
  const Option& file = *table.find("--config");
  if (file.given.empty()) return;
  const std::string& path = file.given.back();
  const Json config = read_config(path);
  for (const auto& [key, value] : config.items()) {
    const std::vector<std::string>& names = config_sections();
    if (std::find(names.begin(), names.end(), key) == names.end() && verb != "plan")
      throw UsageError(fmt::format("{}: {}: not the name of a verb; expected \"{}\" with options",
                                   path, key, verb));
  }
  if (!config.contains(verb)) return;
  const auto allowed = [](const Option& option) {
    return !is_of_one_call(option) && !key_of(option).empty();
  };
  for (const auto& [option, values] : config_values(path, verb, config[verb], table, allowed))
    table.give(option->name, values, fmt::format("{}: {}.{}", path, verb, key_of(*option)));
}

std::string dumped_config(const OptionTable& table, const std::string& verb) {
  Json options = Json::object();
  for (const Option& option : table.all()) {
    const std::string key = key_of(option);
    if (option.given.empty() || is_of_one_call(option) || key.empty()) continue;
    const bool typed = option.kind == Kind::flag || option.kind == Kind::boolean ||
                       option.kind == Kind::integer || option.kind == Kind::number;
    const auto value = [&](const std::string& text) {
      return typed && Json::accept(text) ? Json::parse(text) : Json(text);
    };
    if (is_list(option))
      for (const std::string& text : option.given) options[key].push_back(value(text));
    else
      options[key] = value(option.given.back());
  }
  return Json({{verb, options}}).dump(2) + "\n";
}

}  // namespace fovea::cli
