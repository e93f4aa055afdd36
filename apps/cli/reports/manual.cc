#include "cli/reports/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/reports/examples.h"
#include "fovea/core/machine.h"
#include "options/help.h"

namespace fovea::cli {
namespace {

// Escapes what has a meaning in roff.
std::string roff(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool line_start = i == 0 || text[i - 1] == '\n';
    if (line_start && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\')
      out += "\\e";
    else if (text[i] == '-')
      out += "\\-";
    else if (text[i] == '~')
      out += "\\(ti";
    else if (text[i] == '^')
      out += "\\(ha";
    else if (text[i] == '`')
      out += "\\(ga";
    else if (text[i] == '\'')
      out += "\\(aq";
    else
      out += text[i];
  }
  return out;
}

std::string bold_word(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }

std::string page_head(const std::string& name, const std::string& summary) {
  std::string title = name;
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format(".TH {} 1 \"\" \"fovea {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
                     roff(title), version(), roff(name), roff(summary));
}

std::string option_entry(const Option& option) {
  std::string tag;
  for (const std::string& alias : option.aliases)
    if (alias.size() == 2) tag += bold_word(alias) + ", ";
  tag += bold_word(option.name);
  if (!option.placeholder.empty()) tag += " \\fI" + roff(option.placeholder) + "\\fR";
  return ".TP\n" + tag + "\n" + roff(description_of(option)) + "\n";
}

std::string examples_of(const std::string& verb) {
  std::string out = ".SH EXAMPLES\n";
  for (const Example& example : examples())
    if (verb == example.verb)
      out += ".TP\n" + bold_word(example.command) + "\n" + roff(example.purpose) + "\n";
  return out;
}

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n0\nsuccess\n.TP\n1\nfailed at run time\n.TP\n2\nbad input or usage\n"
    ".TP\n3\na limit was exceeded, or memory ran out\n"
    ".TP\n129, 130, 143\nended by SIGHUP, Ctrl\\-C or SIGTERM\n";

constexpr const char* kEnvironment =
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBFOVEA_\\fIOPTION\\fR\nthe value of an option that the command line does not give, "
    "such as FOVEA_TEMPERATURE for \\-\\-temperature; it has precedence over \\-\\-config. "
    "FOVEA_MODEL is the argument MODEL.\n"
    ".TP\n\\fBFOVEA_ISA\\fR\nthe best instruction set that may be used\n"
    ".TP\n\\fBOMP_NUM_THREADS\\fR\ncompute threads if \\-\\-threads is 0\n"
    ".TP\n\\fBHF_HUB_CACHE\\fR, \\fBHF_HOME\\fR\nwhere models of the Hugging Face Hub are: "
    "HF_HUB_CACHE, else hub in HF_HOME, else ~/.cache/huggingface/hub\n"
    ".TP\n\\fBHF_TOKEN\\fR, \\fBHF_ENDPOINT\\fR, \\fBHF_HUB_OFFLINE\\fR\nthe token for private "
    "models, "
    "another address of the Hub, and 1 if it must not be asked; https_proxy and no_proxy have "
    "effect "
    "too\n"
    ".TP\n\\fBNO_COLOR\\fR, \\fBCOLUMNS\\fR\nno colours; the width of the terminal\n";

}  // namespace

std::string manual_page(const std::vector<VerbDescription>& verbs) {
  std::string out = page_head("fovea", "train, run and inspect Transformers on a CPU");
  out += ".SH SYNOPSIS\n" + bold_word("fovea") + " \\fIVERB\\fR [\\fIOPTIONS\\fR]\n";
  out +=
      ".SH DESCRIPTION\nEach verb has its own page, such as fovea\\-train(1), and \\fBfovea help "
      "\\fIVERB\\fR describes it too. Results are written to standard output, everything else to "
      "standard error.\n.SH VERBS\n";
  for (const VerbDescription& verb : verbs)
    out += ".TP\n" + bold_word(verb.name) + "\n" + roff(verb.summary) + "\n";
  out += fmt::format(
      ".SH OPTIONS\n.TP\n{}\nprint the version, the instruction set that is used, and "
      "the libraries\n.TP\n{} [\\fIVERB\\fR]\nprint a manual page\n.TP\n{} "
      "\\fISHELL\\fR\nprint the completion for bash, zsh or fish\n",
      bold_word("--version"), bold_word("--man"), bold_word("--completion"));
  return out + kExitStatus + kEnvironment;
}

std::string manual_page(const VerbDescription& verb) {
  std::string out = page_head("fovea-" + verb.name, verb.summary);
  const std::string usage = verb.usage.substr(std::min(verb.name.size() + 1, verb.usage.size()));
  out += ".SH SYNOPSIS\n" + bold_word("fovea " + verb.name) + " " + roff(usage) + "\n";
  out += ".SH DESCRIPTION\n" + roff(verb.description) + "\n.SH OPTIONS\n";
  const std::string* section = nullptr;
  for (const Option& option : verb.options) {
    if (!option.section.empty() && (section == nullptr || *section != option.section))
      out += ".SS " + roff(option.section) + "\n";
    section = &option.section;
    out += option_entry(option);
  }
  return out + examples_of(verb.name) + kExitStatus + kEnvironment +
         ".SH SEE ALSO\n\\fBfovea\\fR(1)\n";
}

}  // namespace fovea::cli
