#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/ordered_json.h"
#include "checkpoint/snapshot.h"
#include "fovea/train/runs.h"

namespace fovea::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kLogName = "log.jsonl";
constexpr size_t kMostLogBytes = size_t{1} << 28;

std::string text_in(const Json& entry, const char* key) {
  return entry.contains(key) && entry[key].is_string() ? entry[key].get<std::string>() : "";
}

void add_entry(RunLog& run, const Json& entry, double& earlier, double& current) {
  if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_integer()) return;
  const auto step = entry["step"].get<int64_t>();
  if (entry.contains("version")) {  // a process begins
    run.version = text_in(entry, "version");
    run.time = text_in(entry, "time");
    earlier += std::exchange(current, 0);
  }
  if (entry.contains("command") && entry["command"].is_array()) {
    run.command.clear();
    for (const Json& word : entry["command"])
      if (word.is_string()) run.command.push_back(word.get<std::string>());
    run.working_folder = text_in(entry, "folder");
  }
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_number() || key == "step") continue;
    const auto number = value.get<double>();
    if (key == "seconds" || key == "run_seconds") current = std::max(current, number);
    if (std::isfinite(number)) run.curves[key].emplace_back(step, number);
  }
}

// Adds the leaves of a JSON value by their paths.
void flatten(const nlohmann::json& value, const std::string& name, RunLog& run) {
  if (!value.is_object()) {
    run.settings[name] = value.is_string() ? value.get<std::string>() : value.dump();
    return;
  }
  for (const auto& [key, inner] : value.items())
    flatten(inner, name.empty() ? key : name + "." + key, run);
}

void add_settings(RunLog& run) {
  const std::vector<int64_t> steps = model::find_snapshots(run.folder);
  if (steps.empty()) return;
  const std::string path = model::snapshot_path(run.folder, steps.front()) + "/state.json";
  try {
    const auto state = nlohmann::json(parse_ordered_json(read_file(path), path));
    flatten(state.value("settings", nlohmann::json::object()), "", run);
  } catch (const std::exception&) {  // a damaged snapshot: the log alone
    run.settings.clear();
  }
}

}  // namespace

std::vector<std::string> find_runs(const std::string& folder) {
  constexpr int kMostLevels = 3;
  std::vector<std::string> found;
  std::error_code error;
  if (fs::exists(fs::path(folder) / kLogName, error)) found.push_back(folder);
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at.depth() + 1 >= kMostLevels) at.disable_recursion_pending();
    if (at->is_directory(error) && fs::exists(at->path() / kLogName, error))
      found.push_back(at->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

RunLog read_run(const std::string& folder) {
  RunLog run;
  run.folder = folder;
  const std::string path = (fs::path(folder) / kLogName).string();
  const std::string text = read_file(path, kMostLogBytes);
  double earlier = 0, current = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    try {
      add_entry(run, parse_ordered_json(rest.substr(0, end), path), earlier, current);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a killed run leaves a part of a line
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  run.seconds = earlier + current;
  add_settings(run);
  return run;
}

}  // namespace fovea::train
