#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "course/exercise.h"
#include "fovea/core/error.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

class CheckCommand : public Command {
 public:
  CheckCommand()
      : Command("check FILE",
                "Checks attention that you have computed yourself. FILE is JSON with arrays by "
                "name: the inputs Q, K and V, or X, W_Q, W_K, W_V and W_O, and any of the steps "
                "scores, scaled, weights and output. Each step is compared with the right one. The "
                "exit code is 1 if a step is wrong.") {}

  void declare(OptionTable& table) override {
    table.add(positional("FILE", {"-i", "--input"}, "JSON file with the arrays", file_));
  }

  int run(const OptionTable&) override {
    if (file_.empty()) throw UsageError("FILE: not given; expected a JSON file with arrays");
    bool right = true, any = false;
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    std::string lines;
    for (const ExerciseStep& step : check_exercise(file_)) {
      right = right && (step.right || !step.given);
      any = any || step.given;
      const char* const mark = !step.given ? "-    " : step.right ? "ok   " : "WRONG";
      lines += fmt::format("{} {:<12} [{}]{}\n", mark, step.name, fmt::join(step.shape, ", "),
                           step.given ? " " + printable(step.message) : "");
      all.push_back({{"step", step.name},
                     {"shape", step.shape},
                     {"given", step.given},
                     {"right", step.right},
                     {"message", step.message}});
    }
    if (!any)
      throw UsageError(file_ +
                       ": has none of the steps; expected scores, scaled, weights or "
                       "output");
    print(json ? nlohmann::ordered_json({{"right", right}, {"steps", all}}).dump() + "\n" : lines);
    return right ? 0 : 1;
  }

 private:
  std::string file_;
};

}  // namespace

std::unique_ptr<Command> make_check() { return std::make_unique<CheckCommand>(); }

}  // namespace fovea::cli
