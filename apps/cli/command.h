#pragma once

#include <memory>
#include <string>
#include <vector>

#include "options/options.h"

namespace fovea::cli {

// One verb of the program. It declares its options, applies those given on the command line, and
// runs; run() returns the exit code.
class Command {
 public:
  Command(std::string usage, std::string summary)
      : usage_(std::move(usage)), summary_(std::move(summary)) {}
  virtual ~Command() = default;

  virtual void declare(OptionTable& table) = 0;
  virtual void apply(OptionTable& table) { table.apply(); }
  virtual int run(const OptionTable& table) = 0;
  // Returns whether the ranks started by mpirun can share the work.
  virtual bool runs_on_ranks(const OptionTable&) const { return false; }

  // Returns whether the arguments after "--" are those of a program that the command starts.
  virtual bool passes_arguments() const { return false; }

  const std::string& usage() const { return usage_; }
  const std::string& summary() const { return summary_; }
  bool json = false;                   // --json
  std::vector<std::string> arguments;  // as typed, after the verb
  std::vector<std::string> passed;     // those after "--", see passes_arguments()

 private:
  std::string usage_, summary_;
};

std::unique_ptr<Command> make_train();
std::unique_ptr<Command> make_distil();
std::unique_ptr<Command> make_runs();
std::unique_ptr<Command> make_generate();
std::unique_ptr<Command> make_chat();
std::unique_ptr<Command> make_translate();
std::unique_ptr<Command> make_transcribe();
std::unique_ptr<Command> make_eval();
std::unique_ptr<Command> make_trace();
std::unique_ptr<Command> make_inspect();
std::unique_ptr<Command> make_learn();
std::unique_ptr<Command> make_check();
std::unique_ptr<Command> make_plan();
std::unique_ptr<Command> make_serve();
std::unique_ptr<Command> make_launch();
std::unique_ptr<Command> make_tokenize();
std::unique_ptr<Command> make_embed();
std::unique_ptr<Command> make_rerank();
std::unique_ptr<Command> make_classify();
std::unique_ptr<Command> make_search();
std::unique_ptr<Command> make_doctor();
std::unique_ptr<Command> make_bench();
std::unique_ptr<Command> make_lab();
std::unique_ptr<Command> make_scale();
std::unique_ptr<Command> make_dedup();
std::unique_ptr<Command> make_convert();
std::unique_ptr<Command> make_pull();
std::unique_ptr<Command> make_models();

struct Verb {
  const char* name;
  const char* summary;
  std::unique_ptr<Command> (*make)();
  const char* section = nullptr;  // heading in the overview of this verb and those after it
};
const std::vector<Verb>& verbs();

// Runs the program with the arguments after its name, and returns its exit code. Reports errors,
// those of a CPU that lacks instructions too. Sets handlers of signals. `own`: what starts this
// program again, for jobs of the server: a program, and its arguments before the verb.
int run_program(const std::vector<std::string>& arguments,
                const std::vector<std::string>& own = {"/proc/self/exe"});
const std::vector<std::string>& own_command();  // `own` of run_program()

}  // namespace fovea::cli
