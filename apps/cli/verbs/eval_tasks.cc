#include "cli/verbs/eval_tasks.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "options/field_options.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

std::string tasks_json(const TaskEvaluation& r) {
  nlohmann::ordered_json json = {
      {"records", r.records}, {"choices", r.choices}, {"generated", r.generated}, {"cut", r.cut}};
  for (const auto& [name, value] : r.metrics) json[name] = value;
  return json_line(json) + "\n";
}

std::string tasks_text(const TaskEvaluation& r) {
  std::string text;
  for (const auto& [name, value] : r.metrics) {
    if (name.ends_with("_stderr")) continue;
    const std::optional<double> error = infer::value_of(r.metrics, name + "_stderr");
    std::string title = name;
    for (char& c : title) c = c == '_' ? ' ' : c;
    text += fmt::format("{:<24}{:.4f}{}\n", title, value,
                        error ? fmt::format(" +- {:.4f}", *error) : "");
  }
  return text + fmt::format("{:<24}{}\n", "records", r.records);
}

}  // namespace

void TasksRequest::declare(OptionTable& table) {
  add_fields(table, data_,
             {{.field = "file",
               .name = "--tasks",
               .placeholder = "FILE",
               .section = "Tasks (records as those of lm-evaluation-harness)"},
              {"shots", {"--num-fewshot"}},
              {.field = "limit", .omitted = true},  // --limit of all evaluations
              {"delimiter"},
              {.field = "samples_out", .placeholder = "FILE"}});
}

int TasksRequest::run(const model::Model& model, int64_t limit, bool json) {
  data_.limit = limit;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  ProgressLine line;
  TaskEvaluation result;
  try {
    result = evaluate_tasks(model, data_, [&](double fraction) {
      const std::chrono::duration<double> passed = Clock::now() - start;
      const std::string left =
          fraction > 0 ? ", " + duration(passed.count() * (1 - fraction) / fraction) + " left" : "";
      const std::string done = fmt::format("evaluated {:.0f}%{}", 100 * fraction, left);
      line.show(fraction, done, done);
      return !stop_requested();
    });
  } catch (const Error&) {
    if (!stop_requested()) throw;
    line.clear();
    return stop_code();
  }
  line.clear();
  if (result.cut > 0)
    note(fmt::format("note: {} contexts are longer than the model's; their beginning was cut\n",
                     result.cut));
  print(json ? tasks_json(result) : tasks_text(result));
  return 0;
}

}  // namespace fovea::cli
