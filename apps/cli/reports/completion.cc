#include "cli/reports/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fovea::cli {
namespace {

using Words = std::vector<std::string>;

bool takes_value(const Option& option) { return option.kind != Kind::flag; }
bool is_positional(const Option& option) { return option.kind == Kind::positional; }

// All spellings with dashes.
Words spellings_of(const Option& option) {
  Words all;
  if (!is_positional(option)) all.push_back(option.name);
  all.insert(all.end(), option.aliases.begin(), option.aliases.end());
  return all;
}

// The values of a choice; empty if any text is possible.
Words values_of(const Option& option) {
  if (option.kind == Kind::boolean) return {"true", "false"};
  Words values;
  if (option.kind != Kind::choice) return values;
  for (size_t begin = 0, end = 0; begin < option.expected.size(); begin = end + 2) {
    end = std::min(option.expected.find(", ", begin), option.expected.size());
    values.push_back(option.expected.substr(begin, end - begin));
  }
  return values;
}

bool takes_file(const Option& option) {
  const auto has = [&](const char* word) {
    return option.placeholder.find(word) != std::string::npos;
  };
  return is_positional(option) || has("FILE") || has("DIR");
}

// Text in single quotes of bash and zsh.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

Words names_of(const std::vector<VerbDescription>& verbs) {
  Words names;
  for (const VerbDescription& verb : verbs) names.push_back(verb.name);
  return names;
}

std::string bash_verb(const VerbDescription& verb) {
  Words options, plain;  // plain: options whose value is neither a choice nor a file
  std::string cases;
  for (const Option& option : verb.options) {
    const Words spellings = spellings_of(option);
    const std::string pattern = fmt::format("{}", fmt::join(spellings, "|"));
    if (!is_positional(option)) options.push_back(option.name);
    if (spellings.empty() || !takes_value(option)) continue;
    if (const Words values = values_of(option); !values.empty())
      cases += fmt::format("        {}) values='{}' ;;\n", pattern, fmt::join(values, " "));
    else if (takes_file(option))
      cases += fmt::format("        {}) return ;;\n", pattern);
    else
      plain.push_back(pattern);
  }
  if (!plain.empty())
    cases += fmt::format("        {}) compopt +o default; return ;;\n", fmt::join(plain, "|"));
  return fmt::format(
      "    {})\n      options='{}'\n      case $previous in\n{}      esac\n      ;;\n", verb.name,
      fmt::join(options, " "), cases);
}

std::string bash_script(const std::vector<VerbDescription>& verbs) {
  std::string cases;
  for (const VerbDescription& verb : verbs) cases += bash_verb(verb);
  return fmt::format(
      "# bash completion for fovea, written by fovea --completion bash\n"
      "_fovea() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  local options='' values=''\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)) || {{ ((COMP_CWORD == 2)) && [[ $previous == help ]]; }}; then\n"
      "    COMPREPLY=($(compgen -W '{} help --help --version --man --completion' -- "
      "\"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  if [[ $current == = ]]; then\n"
      "    current=''\n"
      "  elif [[ $previous == = ]]; then\n"
      "    previous=${{COMP_WORDS[COMP_CWORD-2]}}\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n{}  esac\n"
      "  if [[ -n $values ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
      "  elif [[ $current == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
      "  fi\n"
      "}}\n"
      "complete -o default -F _fovea fovea\n",
      fmt::join(names_of(verbs), " "), cases);
}

std::string zsh_option(const Option& option, const std::string& spelling) {
  std::string help;
  for (const char c : option.help)
    help +=
        c == '[' || c == ']' || c == ':' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  std::string spec = "*" + spelling + "[" + help + "]";
  if (takes_value(option)) {
    const Words values = values_of(option);
    const std::string action = !values.empty()      ? fmt::format("({})", fmt::join(values, " "))
                               : takes_file(option) ? "_files"
                                                    : " ";
    std::string label = option.placeholder.empty() ? option.name : option.placeholder;
    std::replace(label.begin(), label.end(), ':', ' ');
    spec += ":" + label + ":" + action;
  }
  return in_quotes(spec);
}

std::string zsh_script(const std::vector<VerbDescription>& verbs) {
  std::string names, cases;
  for (const VerbDescription& verb : verbs) {
    names += "    " + in_quotes(verb.name + ":" + verb.summary) + "\n";
    cases += "    " + verb.name + ")\n      _arguments \\\n";
    for (const Option& option : verb.options)
      for (const std::string& spelling : spellings_of(option))
        cases += "        " + zsh_option(option, spelling) + " \\\n";
    cases += "        '*:FILE:_files'\n      ;;\n";
  }
  return "#compdef fovea\n# zsh completion for fovea, written by fovea --completion zsh\n"
         "_fovea() {\n  local -a verbs\n  verbs=(\n" +
         names +
         "    'help:describe a verb'\n  )\n"
         "  if (( CURRENT == 2 )) || { (( CURRENT == 3 )) && [[ $words[2] == help ]] }; then\n"
         "    _describe verb verbs\n    return\n  fi\n"
         "  local verb=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $verb in\n" +
         cases + "  esac\n}\n_fovea \"$@\"\n";
}

// Text in single quotes of fish.
std::string fish_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return out + "'";
}

std::string fish_option(const VerbDescription& verb, const Option& option) {
  std::string line = "complete -c fovea -n '__fish_seen_subcommand_from " + verb.name + "'";
  for (const std::string& spelling : spellings_of(option)) {
    const bool is_long = spelling.starts_with("--");
    line += (is_long                ? " -l "
             : spelling.size() == 2 ? " -s "
                                    : " -o ") +
            spelling.substr(is_long ? 2 : 1);
  }
  if (takes_value(option)) {
    const Words values = values_of(option);
    line += values.empty() ? takes_file(option) ? " -r" : " -x"
                           : fmt::format(" -x -a '{}'", fmt::join(values, " "));
  }
  return line + " -d " + fish_text(option.help) + "\n";
}

std::string fish_script(const std::vector<VerbDescription>& verbs) {
  const std::string names = fmt::format("{}", fmt::join(names_of(verbs), " "));
  std::string out = "# fish completion for fovea, written by fovea --completion fish\n";
  for (const VerbDescription& verb : verbs) {
    out += fmt::format("complete -c fovea -f -n 'not __fish_seen_subcommand_from {}' -a {} -d {}\n",
                       names, verb.name, fish_text(verb.summary));
    for (const Option& option : verb.options)
      if (!spellings_of(option).empty()) out += fish_option(verb, option);
  }
  return out;
}

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<VerbDescription>& verbs) {
  if (shell == "bash") return bash_script(verbs);
  if (shell == "zsh") return zsh_script(verbs);
  if (shell == "fish") return fish_script(verbs);
  throw UsageError(
      fmt::format("--completion: \"{}\" is unknown; expected bash, zsh or fish", shell));
}

}  // namespace fovea::cli
