// fovea: the command line. Each verb parses, calls the library and prints; nothing else lives here.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/nearest.h"
#include "cli/command.h"
#include "fovea/doctor.h"
#include "fovea/error.h"
#include "fovea/excerpt.h"
#include "jobs/ranks.h"
#include "options/open_model.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = {
      {"train", "train a Transformer on text", make_train},
      {"generate", "let a model write on", make_generate},
      {"chat", "talk with a model", make_chat},
      {"translate", "translate lines of text", make_translate},
      {"eval", "loss, perplexity and bits per byte of a model on text", make_eval},
      {"trace", "write down what a model computes, layer by layer", make_trace},
      {"inspect", "see inside a model: a page, a map in the terminal, or files", make_inspect},
      {"plan", "parameters, arithmetic, memory and cost of a model of any size", make_plan},
      {"serve", "answer many clients over HTTP, as OpenAI's API", make_serve},
      {"tokenize", "text to token ids and back", make_tokenize},
      {"embed", "texts to vectors of their meaning", make_embed},
      {"rerank", "lines sorted by how well they answer a query", make_rerank},
      {"search", "find passages of text files by their meaning", make_search},
      {"convert", "write a model in another dtype, or quantised", make_convert},
      {"doctor", "what this machine offers, and whether a model is whole", make_doctor},
      {"bench", "measure the speed of a model, or of training", make_bench},
  };
  return all;
}

namespace {

std::string overview() {
  std::string out = "usage: fovea VERB [OPTIONS]\n\n";
  for (const Verb& verb : verbs()) out += fmt::format("  {:<10} {}\n", verb.name, verb.summary);
  return out + "\n'fovea VERB --help' tells more; 'fovea --version' says which fovea this is.\n";
}

int unknown_verb(const std::string& typed) {
  std::vector<std::string> names = {"--help", "--version"};
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  const std::string near = nearest(typed, names);
  throw UsageError(fmt::format("{}: unknown {}; {}", typed, typed[0] == '-' ? "option" : "verb",
                               near.empty() ? "see fovea --help" : "did you mean " + near + "?"));
}

struct Common {
  bool help = false, list = false;
  int64_t threads = 0;
};

OptionTable table_of(Command& command, Common& common) {
  OptionTable table;
  command.declare(table);
  table.section("Common");
  table.add(integer("--threads", {"-t", "--cpu-threads"},
                    "compute threads; 0 = as many as the cores given to us", common.threads, 0,
                    1024));
  table.add(flag("--json", {}, "print one JSON object as the result", command.json));
  table.add(flag("--strict", {},
                 "refuse to run a model whose files are odd (NaN in a weight, ...), not only warn",
                 strict));
  table.add(flag("--help", {"-h"}, "show this", common.help));
  return table;
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

// The team that --threads or OMP_NUM_THREADS asks for, and a word where it is smaller.
void settle_threads(int64_t option) {
  if (option > 0) set_threads(static_cast<int>(option));
  const char* variable = std::getenv("OMP_NUM_THREADS");
  const int64_t asked = option > 0            ? option
                        : variable == nullptr ? 0
                                              : std::strtol(variable, nullptr, 10);
  if (asked > 0 && threads() < asked) {
    note(fmt::format("warning: {}: {} threads; {} compute, as many as there can be\n",
                     option > 0 ? "--threads" : "OMP_NUM_THREADS", asked, threads()));
  }
}

int run_verb(const Verb& verb, std::vector<std::string> arguments) {
  const std::unique_ptr<Command> command = verb.make();
  Common common;
  OptionTable table = table_of(*command, common);
  table.parse(arguments);
  if (table.given("--help")) {
    print(help_text(command->usage(), command->summary(), table, terminal_width()));
    return 0;
  }
  if (Ranks::current() != nullptr && !command->runs_on_ranks(table))
    throw UsageError(
        fmt::format("{}: mpirun started {} of it; expected one, or embed or translate of lines",
                    verb.name, Ranks::current()->size()));
  command->arguments = std::move(arguments);
  command->apply(table);
  settle_threads(common.threads);
  return command->run(table);
}

int dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    note(overview());
    return 2;
  }
  const std::string& first = arguments.front();
  if (first == "-h" || first == "--help" || first == "help") {
    print(overview());
    return 0;
  }
  if (first == "--version" || first == "-V") {
    print("fovea " + version() + "\n");
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

// One line of readable length, whatever a message quotes.
int complain(const std::string& message, int code) {
  constexpr size_t kMost = 2000;
  std::string line = printable(message);
  if (line.size() > kMost) line = excerpt(line, kMost);
  for (char& c : line) c = c == '\n' ? ' ' : c;
  if (Ranks::current() != nullptr) Ranks::current()->fail(line, code);
  note("fovea: error: " + line + "\n");
  return code;
}

int guarded(const std::vector<std::string>& arguments) {
  std::optional<Ranks> ranks;
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
    return complain("memory: none left; expected a smaller model, batch or context", 3);
  } catch (const std::exception& error) {
    return complain(error.what(), 1);
  }
}

}  // namespace
}  // namespace fovea::cli

namespace {

// On a machine with other work to do, a thread that spins at each barrier costs whole slices of
// the scheduler's time: steps were measured 20 times slower. OpenMP's runtime reads its setting
// when it is loaded, so the program starts itself again with one: up to some 250 us of spinning,
// longer than one thread works alone between two barriers. With 50 us a thread fell asleep 55 times
// for each token written, which cost a fifth of the speed.
void wait_politely(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "5000", 1);
  execv("/proc/self/exe", argv);  // if that fails, go on as we are
}

}  // namespace

int main(int argc, char** argv) {
  fovea::cli::Ranks::take_cores();  // before OpenMP's runtime counts them
  wait_politely(argv);
  const std::string missing = fovea::missing_cpu_features();
  if (!missing.empty()) {
    fovea::cli::note("fovea: error: this CPU: lacks " + missing + "; expected an x86-64-v3 CPU\n");
    return 2;
  }
  fovea::cli::start_signals();
  return fovea::cli::guarded({argv + std::min(argc, 1), argv + argc});
}
