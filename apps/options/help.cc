#include "options/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace fovea::cli {
namespace {

constexpr size_t kColumn = 28;  // start of the descriptions

// "Model (overrides the preset)" -> "model"
std::string section_name(const std::string& title) {
  std::string name = title.substr(0, title.find_first_of(" ,"));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::vector<std::string> section_names(const OptionTable& table) {
  std::vector<std::string> names;
  for (const Option& option : table.all()) {
    const std::string name = section_name(option.section);
    if (!name.empty() && (names.empty() || names.back() != name)) names.push_back(name);
  }
  return names;
}

std::string spelling_line(const Option& option) {
  std::string line;
  for (const std::string& alias : option.aliases) {
    if (alias.size() == 2) line += alias + ", ";
  }
  line += option.name;
  return option.placeholder.empty() ? line : line + " " + option.placeholder;
}

// The short form omits ranges and aliases.
std::string described(const Option& option, bool brief) {
  std::string extra;
  const auto say = [&](const std::string& part) { extra += (extra.empty() ? "" : "; ") + part; };
  const bool numeric = option.kind == Kind::integer || option.kind == Kind::number;
  if ((numeric && !brief) || option.kind == Kind::choice) say(option.expected);
  if (!option.unset.empty()) {
    say("default: " + option.unset);
  } else if (option.kind == Kind::boolean && option.initial == "true") {
    say(fmt::format("on by default; {} false turns it off", option.name));
  } else if (!option.initial.empty() && option.kind != Kind::flag &&
             option.kind != Kind::positional) {
    say("default " + option.initial);
  }
  std::string also;
  for (const std::string& alias : option.aliases) {
    if (alias.size() > 2) also += (also.empty() ? "" : " ") + alias;
  }
  if (!also.empty() && !brief) say("also " + also);
  return extra.empty() ? option.help : option.help + " (" + extra + ")";
}

std::string wrapped(const std::string& words, int indent, int width) {
  std::string out, line;
  size_t begin = 0;
  while (begin < words.size()) {
    const size_t end = std::min(words.find(' ', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    begin = end + 1;
    if (!line.empty() && indent + static_cast<int>(line.size() + 1 + word.size()) > width) {
      out += line + "\n" + std::string(static_cast<size_t>(indent), ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + line + "\n";
}

std::string option_text(const Option& option, bool brief, int width) {
  std::string out, line = "  " + spelling_line(option);
  if (line.size() + 2 > kColumn) {
    out = line + "\n";
    line.clear();
  }
  line.resize(kColumn, ' ');
  return out + line +
         wrapped(described(option, brief), static_cast<int>(kColumn), std::max(width, 60));
}

bool shown(const Option& option, const HelpRequest& request) {
  if (!option.replaced_by.empty()) return false;
  if (request.all) return true;
  if (request.section.empty()) return !option.advanced;
  return section_name(option.section) == request.section;
}

}  // namespace

std::string description_of(const Option& option) { return described(option, false); }

std::string take_section(std::vector<std::string>& arguments, const OptionTable& table) {
  const std::vector<std::string> names = section_names(table);
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i - 1] != "--help" && arguments[i - 1] != "-h") continue;
    const std::string section = section_name(arguments[i]);
    if (std::find(names.begin(), names.end(), section) == names.end()) continue;
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
    return section;
  }
  return {};
}

std::string help_text(const std::string& usage, const std::string& summary,
                      const OptionTable& table, const HelpRequest& request, int width) {
  const bool brief = !request.all && request.section.empty();
  const auto& options = table.all();
  const bool partial = brief && std::any_of(options.begin(), options.end(),
                                            [](const Option& option) { return option.advanced; });
  std::string out = "usage: fovea " + usage + "\n\n" + wrapped(summary, 0, width);
  if (partial) out += "\n";
  const std::string* section = nullptr;
  for (const Option& option : options) {
    if (!shown(option, request)) continue;
    if ((section == nullptr || option.section != *section) && !partial) {
      out += option.section.empty() ? "\n" : "\n" + option.section + ":\n";
    }
    section = &option.section;
    out += option_text(option, brief, width);
  }
  if (!brief) return out;
  const std::string verb = usage.substr(0, usage.find(' '));
  if (!partial) return out + wrapped("\n--help-all also lists ranges and aliases.", 0, width);
  return out + "\n" +
         wrapped(fmt::format("fovea help {} SECTION lists all options of a section: {}. "
                             "--help-all lists all options, with ranges and aliases.",
                             verb, fmt::join(section_names(table), ", ")),
                 0, width);
}

}  // namespace fovea::cli
