// The program: each verb parses its options, calls the library and prints the result.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/nearest.h"
#include "cli/command.h"
#include "cli/reports/completion.h"
#include "cli/reports/greeting.h"
#include "cli/reports/manual.h"
#include "fovea/core/error.h"
#include "fovea/core/excerpt.h"
#include "fovea/core/machine.h"
#include "jobs/ranks.h"
#include "options/config_file.h"
#include "options/fetch_model.h"
#include "options/help.h"
#include "options/open_model.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = {
      {"learn", "serve a course on Transformers, on a small model that the program carries",
       make_learn, "Look inside and learn"},
      {"inspect", "show a model's attention: as a web page, in the terminal, or as files",
       make_inspect},
      {"trace", "write the intermediate results of a model to a file", make_trace},
      {"check", "check attention that you have computed yourself", make_check},
      {"lab", "test claims about Transformers by experiments", make_lab},
      {"train", "train a Transformer on text", make_train, "Train"},
      {"distil", "train a model to predict what a larger model predicts", make_distil},
      {"runs", "list, compare and plot training runs", make_runs},
      {"plan", "estimate parameters, compute, memory and cost of a model", make_plan},
      {"scale", "fit a scaling law to a text", make_scale},
      {"dedup", "leave out repeated texts of training data", make_dedup},
      {"generate", "generate text with a model", make_generate, "Use a model"},
      {"chat", "chat with a model", make_chat},
      {"translate", "translate lines of text", make_translate},
      {"transcribe", "convert the speech in audio files to text", make_transcribe},
      {"classify", "predict labels, entities, answers or masked words", make_classify},
      {"embed", "compute embedding vectors of texts, or train an embedder", make_embed},
      {"rerank", "sort lines by relevance to a query", make_rerank},
      {"search", "search text files by meaning", make_search},
      {"serve", "serve models over HTTP with OpenAI's API", make_serve},
      {"launch", "start a coding agent with a served model", make_launch},
      {"pull", "fetch models from the Hugging Face Hub", make_pull, "Models on this disk"},
      {"models", "list, remove and verify models, or suggest some", make_models},
      {"eval", "measure loss, perplexity and other metrics of a model on data", make_eval,
       "Measure"},
      {"bench", "measure the speed of a model or of training", make_bench},
      {"tokenize", "convert text to token ids and back, or train a tokenizer", make_tokenize,
       "Files and machine"},
      {"convert", "convert a model to another format or precision", make_convert},
      {"doctor", "check this machine, or a model directory", make_doctor},
  };
  return all;
}

namespace {

std::string overview() {
  std::string out =
      "usage: fovea VERB [OPTIONS]\n\n"
      "First steps:\n"
      "    fovea learn                               # a course on Transformers, for beginners\n"
      "    fovea train book.txt --out model          # train a small model on a text\n"
      "    fovea generate model \"Once upon a time\"   # continue a text with it\n"
      "    fovea inspect model                       # look at its attention in the browser\n";
  for (const Verb& verb : verbs()) {
    if (verb.section != nullptr) out += fmt::format("\n{}:\n", verb.section);
    out += fmt::format("  {:<10} {}\n", verb.name, verb.summary);
  }
  return out +
         "\n'fovea help VERB' describes a verb; 'fovea --version' prints the version; 'fovea --man "
         "VERB'\nprints a manual page; 'fovea --completion SHELL' prints a completion for "
         "bash, zsh or fish.\n";
}

// Returns the output of `fovea --version`: the version with its commit, the instruction set used on
// this CPU, and the versions of the libraries.
std::string version_text() {
  const std::string commit = FOVEA_COMMIT;
  return fmt::format("fovea {}{}\nCPU: {}\nlibraries: {}\n", version(),
                     commit.empty() ? "" : " (commit " + commit + ")", instruction_set(),
                     FOVEA_LIBRARIES);
}

int unknown_verb(const std::string& typed) {
  std::vector<std::string> names = {"--help", "--version", "--man", "--completion"};
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  // The verbs of programs that people know.
  static constexpr std::pair<const char*, const char*> kForeign[] = {
      {"run", "fovea chat MODEL, or fovea generate MODEL"},
      {"list", "fovea models"},
      {"ls", "fovea models"},
      {"ps", "curl http://localhost:8080/v1/models, for a server"},
      {"show", "fovea plan MODEL, or fovea doctor MODEL"},
      {"rm", "fovea models rm NAME"},
      {"download", "fovea pull NAME"},
      {"finetune", "fovea train DATA --from MODEL"}};
  for (const auto& [foreign, own] : kForeign)
    if (typed == foreign)
      throw UsageError(fmt::format("{}: unknown verb; expected {}", typed, own));
  const std::string near = nearest(typed, names);
  throw UsageError(fmt::format("{}: unknown {}; {}", typed, typed[0] == '-' ? "option" : "verb",
                               near.empty() ? "see fovea --help" : "did you mean " + near + "?"));
}

struct Common {
  bool help = false, help_all = false, dump_config = false, yes = false;
  std::string config;
  std::string device = "cpu";
  int64_t threads = 0;
};

// Adds the options of devices, of models at the Hub and of configuration files, which a long help
// shows only.
void add_advanced(OptionTable& table, Common& common) {
  const auto any = [&](const auto& is) {
    return std::any_of(table.all().begin(), table.all().end(), is);
  };
  const bool partial = any([](const Option& option) { return option.advanced; });
  const auto add = [&](Option option) {
    option.advanced = partial;
    table.add(std::move(option));
  };
  const bool has_model = any([](const Option& option) { return option.model_in != nullptr; });
  if (has_model) {
    Option device = text("--device", {},
                         "where models compute: cpu, or cuda, an NVIDIA GPU (cuda:1 = the second "
                         "one)",
                         common.device);
    device.advanced = true;
    table.add(as("NAME", std::move(device)));
  }
  if (has_model)
    add(flag("--yes", {"-y"}, "fetch a model that is only at the Hugging Face Hub without asking",
             common.yes));
  if (table.find("--config") != nullptr) return;  // the verb has its own
  add(as("FILE", text("--config", {}, "JSON or YAML file with options, under the name of the verb",
                      common.config)));
  add(flag("--dump-config", {}, "print the given options as a --config file, and exit",
           common.dump_config));
}

OptionTable table_of(Command& command, Common& common) {
  OptionTable table;
  command.declare(table);
  table.section("Common");
  table.add(integer("--threads", {"-t", "--cpu-threads"},
                    "compute threads; 0 = OMP_NUM_THREADS, or else all available cores",
                    common.threads, 0, 1024));
  table.add(flag("--json", {}, "print the result as one JSON object", command.json));
  table.add(flag("--strict", {},
                 "treat warnings about a model's files as errors (NaN in a weight, ...)", strict));
  add_advanced(table, common);
  table.add(flag("--help", {"-h"}, "print this help", common.help));
  table.add(flag("--help-all", {}, "print all options, with ranges and aliases", common.help_all));
  return table;
}

// Describes all verbs for their manual pages and for the completion of shells.
std::vector<VerbDescription> descriptions() {
  std::vector<VerbDescription> all;
  for (const Verb& verb : verbs()) {
    const std::unique_ptr<Command> command = verb.make();
    Common common;
    std::vector<Option> options = table_of(*command, common).all();
    std::erase_if(options, [](const Option& option) { return !option.replaced_by.empty(); });
    all.push_back(
        {verb.name, verb.summary, command->usage(), command->summary(), std::move(options)});
  }
  return all;
}

int print_manual(const std::string& verb) {
  const std::vector<VerbDescription> all = descriptions();
  if (verb.empty()) {
    print(manual_page(all));
    return 0;
  }
  for (const VerbDescription& each : all) {
    if (each.name != verb) continue;
    print(manual_page(each));
    return 0;
  }
  return unknown_verb(verb);
}

int list_options() {
  nlohmann::ordered_json all;
  for (const Verb& verb : verbs()) {
    const std::unique_ptr<Command> command = verb.make();
    Common common;
    all[verb.name] = nlohmann::ordered_json::parse(table_json(table_of(*command, common)));
  }
  print(all.dump() + "\n");
  return 0;
}

// Sets the number of threads; warns if fewer are available than requested.
void settle_threads(int64_t option) {
  if (option > 0) set_threads(static_cast<int>(option));
  const char* variable = std::getenv("OMP_NUM_THREADS");
  const int64_t requested = option > 0            ? option
                            : variable == nullptr ? 0
                                                  : std::strtol(variable, nullptr, 10);
  if (requested > 0 && thread_count() < requested) {
    note(fmt::format("warning: {}: {} threads requested, but only {} are available\n",
                     option > 0 ? "--threads" : "OMP_NUM_THREADS", requested, thread_count()));
  }
}

int run_command(const Verb& verb, Command& command, OptionTable& table, const Common& common) {
  if (jobs::Ranks::current() != nullptr && !command.runs_on_ranks(table))
    throw UsageError(
        fmt::format("{}: cannot run on the {} ranks of mpirun; expected one rank, or "
                    "another verb: train, distil, eval on text, pairs or labels, embed, classify "
                    "or translate on lines, generate on --prompts, search --build, transcribe on "
                    "files, scale, or an "
                    "experiment of lab",
                    verb.name, jobs::Ranks::current()->size()));
  command.apply(table);
  settle_threads(common.threads);
  if (!table.given("--dump-config")) use_device(common.device);
  return command.run(table);
}

int run_verb(const Verb& verb, std::vector<std::string> arguments) {
  const std::unique_ptr<Command> command = verb.make();
  Common common;
  OptionTable table = table_of(*command, common);
  HelpRequest help;
  if (const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
      dashes != arguments.end() && command->passes_arguments()) {
    command->passed.assign(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
  }
  help.section = take_section(arguments, table);
  table.parse(arguments);
  help.all = table.given("--help-all");
  if (help.all || table.given("--help")) {
    print(help_text(command->usage(), command->summary(), table, help, terminal_width()));
    return 0;
  }
  for (const Option& option : table.all())
    if (!option.given.empty() && !option.replaced_by.empty())
      note(
          fmt::format("warning: {}: the next version has no such option; write {} into the JSON "
                      "file of the Spec instead (docs/formats.md)\n",
                      option.name, option.replaced_by));
  command->arguments = std::move(arguments);
  const bool own_config = table.find("--config")->section != table.find("--threads")->section;
  take_environment(table);
  if (!own_config) take_config(table, verb.name);
  if (!own_config && table.given("--dump-config")) {
    print(dumped_config(table, verb.name));
    return 0;
  }
  if (table.find("--yes") != nullptr) fetch_models(table, table.given("--yes"));
  try {
    return run_command(verb, *command, table, common);
  } catch (const Error& error) {
    throw Error(error.kind(), message_of(error, table));
  }
}

int dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    note(greeting());
    return 2;
  }
  const std::string& first = arguments.front();
  for (const Verb& verb : verbs()) config_sections().emplace_back(verb.name);
  if (first == "help" && arguments.size() > 1) {
    std::vector<std::string> help = arguments;  // "help train model" -> "train --help model"
    help[0] = arguments[1];
    help[1] = "--help";
    return dispatch(help);
  }
  if (first == "-h" || first == "--help" || first == "help") {
    print(overview());
    return 0;
  }
  if (first == "--version" || first == "-V") {
    print(version_text());
    return 0;
  }
  if (first == "--man") return print_manual(arguments.size() > 1 ? arguments[1] : "");
  if (first == "--completion") {
    print(completion_script(arguments.size() > 1 ? arguments[1] : "", descriptions()));
    return 0;
  }
  if (first == "--list-options") return list_options();  // for the tests
  for (const Verb& verb : verbs()) {
    if (first == verb.name) return run_verb(verb, {arguments.begin() + 1, arguments.end()});
  }
  return unknown_verb(first);
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidArgument:
    case ErrorKind::BadFile:
    case ErrorKind::Unsupported: return 2;
    case ErrorKind::OutOfMemory: return 3;
    case ErrorKind::Failed:
    case ErrorKind::Internal: return 1;
  }
  return 1;
}

// Prints an error as one line of limited length and returns `code`.
int complain(const std::string& message, int code) {
  constexpr size_t kMost = 2000;
  std::string line = printable(message);
  if (line.size() > kMost) line = excerpt(line, kMost);
  for (char& c : line) c = c == '\n' ? ' ' : c;
  if (jobs::Ranks::current() != nullptr) jobs::Ranks::current()->fail(line, code);
  note("fovea: error: " + line + "\n");
  return code;
}

int guarded(const std::vector<std::string>& arguments) {
  std::optional<jobs::Ranks> ranks;
  try {
    if (started_processes() > 1) ranks.emplace();
    return dispatch(arguments);
  } catch (const OutputClosed&) {
    if (ranks) ranks->leave(0);
    return 0;
  } catch (const UsageError& error) {
    return complain(error.what(), 2);
  } catch (const Error& error) {
    return complain(error.what(), exit_code(error.kind()));
  } catch (const std::bad_alloc&) {
    return complain("memory: out of memory; expected a smaller model, batch or context", 3);
  } catch (const std::exception& error) {
    return complain(error.what(), 1);
  }
}

std::vector<std::string> this_program;

}  // namespace

const std::vector<std::string>& own_command() { return this_program; }

int run_program(const std::vector<std::string>& arguments, const std::vector<std::string>& own) {
  this_program = own;
  jobs::Ranks::take_cores();  // must precede the first use of thread_count()
  const std::string missing = missing_cpu_features();
  if (!missing.empty()) {
    note("fovea: error: this CPU: missing " + missing + "; expected an x86-64-v3 CPU\n");
    return 2;
  }
  start_signals();
  return guarded(arguments);
}

}  // namespace fovea::cli
