// A training seen from outside, by the files that it writes.

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "inspector/routes.h"

namespace fovea::inspector {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPoints = 1000;  // of a curve: more than a screen has columns for

// Of neighbours one is kept, always the same one as the log grows by less than a factor of 2.
Json thinned(std::vector<Json> steps) {
  size_t stride = 1;
  while (steps.size() / stride > kPoints) stride *= 2;
  Json kept = Json::array();
  for (size_t i = 0; i < steps.size(); ++i)
    if (i % stride == 0 || i + 1 == steps.size()) kept.push_back(std::move(steps[i]));
  return kept;
}

}  // namespace

std::string training_log(const std::string& folder) {
  std::ifstream file(std::filesystem::path(folder) / "log.jsonl");
  std::vector<Json> steps;
  Json evaluations = Json::array();
  for (std::string line; std::getline(file, line);) {
    // The last line may be half written.
    Json entry = Json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("step")) continue;
    if (entry.contains("eval_loss"))
      evaluations.push_back(std::move(entry));
    else if (entry.contains("loss"))
      steps.push_back({entry["step"], entry["loss"], entry.value("grad_norm", Json()),
                       entry.value("learning_rate", Json()),
                       entry.value("tokens_per_sec", Json())});
  }
  return Json({{"steps", thinned(std::move(steps))}, {"evaluations", evaluations}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fovea::inspector
