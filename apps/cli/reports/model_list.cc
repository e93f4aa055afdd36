#include "cli/reports/model_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/gguf.h"
#include "fovea/core/error.h"
#include "fovea/open.h"
#include "terminal/progress.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

// Returns the name of a model's architecture, as its file says; empty if it does not.
std::string family_of(const std::string& path) {
  if (is_gguf(path)) return std::string(Gguf(path).text("general.architecture").value_or(""));
  std::ifstream file(path + "/config.json");
  const auto json = nlohmann::json::parse(file, nullptr, false);
  return json.is_object() && json.contains("model_type") && json["model_type"].is_string()
             ? json["model_type"].get<std::string>()
             : "";
}

ListedModel described(const model::CachedRepository& repository) {
  if (repository.dataset) return {repository, "", "data set"};
  const std::string& path = repository.path;
  if (path.empty()) return {repository, "", "incomplete"};
  try {
    const bool adapter = std::filesystem::exists(path + "/adapter_config.json");
    return {repository, family_of(path), adapter ? "adapter" : name_of(model_use(path))};
  } catch (const Error&) {
    return {repository, "", "not supported"};
  }
}

std::string day_of(int64_t seconds) {
  if (seconds == 0) return "";
  const auto time = static_cast<std::time_t>(seconds);
  std::tm day = {};
  localtime_r(&time, &day);
  return fmt::format("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

}  // namespace

std::vector<ListedModel> listed_models(const model::HubSettings& settings) {
  std::vector<ListedModel> all;
  for (const model::CachedRepository& each : model::cached_repositories(settings))
    all.push_back(described(each));
  std::stable_sort(all.begin(), all.end(), [](const ListedModel& a, const ListedModel& b) {
    return a.repository.last_used > b.repository.last_used;
  });
  return all;
}

std::string model_table(const std::vector<ListedModel>& models) {
  size_t width = 4;
  for (const ListedModel& each : models) width = std::max(width, each.repository.name.size());
  std::string text = fmt::format("{:<{}}  {:>9}  {:<10}  {:<14}  {}\n", "name", width, "size",
                                 "last used", "family", "use");
  for (const ListedModel& each : models)
    text += fmt::format("{:<{}}  {:>9}  {:<10}  {:<14}  {}\n", printable(each.repository.name),
                        width, memory(static_cast<double>(each.repository.bytes)),
                        day_of(each.repository.last_used), printable(each.family), each.use);
  return text;
}

}  // namespace fovea::cli
