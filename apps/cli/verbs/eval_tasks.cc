#include "cli/verbs/eval_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/ordered_json.h"
#include "options/fetch_model.h"
#include "options/field_options.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

std::string tasks_json(const TaskEvaluation& r, const std::string& task) {
  nlohmann::ordered_json json;
  if (!task.empty()) json["task"] = task;
  json.update(
      {{"records", r.records}, {"choices", r.choices}, {"generated", r.generated}, {"cut", r.cut}});
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

// "samples.jsonl" -> "samples-mmlu.jsonl"
std::string samples_of(const std::string& path, const std::string& task) {
  if (path.empty()) return path;
  const std::filesystem::path file(path);
  return (file.parent_path() / (file.stem().string() + "-" + task + file.extension().string()))
      .string();
}

}  // namespace

void TasksRequest::declare(OptionTable& table) {
  add_fields(table, data_,
             {{.field = "file",
               .name = "--tasks",
               .placeholder = "FILE|NAME,...",
               .section = "Tasks (records as those of lm-evaluation-harness)"},
              {"shots", {"--num-fewshot"}},
              {.field = "limit", .omitted = true},  // --limit of all evaluations
              {"delimiter"},
              {.field = "samples_out", .placeholder = "FILE"}});
}

// Returns the names of tasks; a file is the only one.
std::vector<std::string> TasksRequest::tasks() const {
  std::vector<std::string> names;
  std::istringstream list(data_.file);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  const bool all_named = std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return task_data_set(name).has_value();
  });
  return all_named && !std::filesystem::exists(data_.file) ? names : std::vector{data_.file};
}

void TasksRequest::fetch(bool yes) const {
  for (const std::string& task : tasks())
    if (const auto data = task_data_set(task)) fetch_if_missing(*data, yes);
}

int TasksRequest::run(const model::Model& model, int64_t limit, bool json) {
  const std::vector<std::string> all = tasks();
  for (const std::string& task : all) {
    TaskData data = data_;
    data.file = task;
    data.limit = limit;
    if (all.size() > 1) data.samples_out = samples_of(data.samples_out, task);
    if (const int code = run_one(model, data, all.size() > 1, json); code != 0) return code;
  }
  return 0;
}

int TasksRequest::run_one(const model::Model& model, const TaskData& data, bool named,
                          bool json) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  ProgressLine line;
  TaskEvaluation result;
  try {
    result = evaluate_tasks(model, data, [&](double fraction) {
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
  const std::string name = named ? data.file : "";
  print(json ? tasks_json(result, name) : (named ? name + "\n" : "") + tasks_text(result));
  return 0;
}

}  // namespace fovea::cli
