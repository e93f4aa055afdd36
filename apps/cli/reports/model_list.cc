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

void describe(ListedModel& model) {
  if (model.dataset) {
    model.use = "data set";
  } else if (model.path.empty()) {
    model.use = "incomplete";
  } else {
    try {
      model.family = family_of(model.path);
      model.use = std::filesystem::exists(model.path + "/adapter_config.json")
                      ? "adapter"
                      : name_of(model_use(model.path));
    } catch (const Error&) {
      model.use = "not supported";
    }
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
  for (const model::CachedRepository& each : model::cached_repositories(settings)) {
    ListedModel model{each.name, each.path, "", "", each.dataset, each.bytes, each.last_used};
    describe(model);
    all.push_back(std::move(model));
  }
  std::stable_sort(all.begin(), all.end(), [](const ListedModel& a, const ListedModel& b) {
    return a.last_used > b.last_used;
  });
  return all;
}

std::string model_table(const std::vector<ListedModel>& models) {
  size_t width = 4;
  for (const ListedModel& each : models) width = std::max(width, each.name.size());
  std::string text = fmt::format("{:<{}}  {:>9}  {:<10}  {:<14}  {}\n", "name", width, "size",
                                 "last used", "family", "use");
  for (const ListedModel& each : models)
    text += fmt::format("{:<{}}  {:>9}  {:<10}  {:<14}  {}\n", printable(each.name), width,
                        memory(static_cast<double>(each.bytes)), day_of(each.last_used),
                        printable(each.family), each.use);
  return text;
}

}  // namespace fovea::cli
