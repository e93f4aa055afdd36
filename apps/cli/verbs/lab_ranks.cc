#include "cli/verbs/lab_ranks.h"

#include <chrono>
#include <utility>

namespace fovea::cli {
namespace {

using Json = jobs::Ranks::Json;

jobs::Task timed(LabRanks::Measure measure) {
  return [measure = std::move(measure)](const Json& task) -> Json {
    const auto start = std::chrono::steady_clock::now();
    Json values = Json::array();
    for (const LabReading& r : measure({task["arm"], task["x"], task["rate"], task["seed"]}))
      values.push_back({r.series, r.x, r.y});
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    return {{"values", values}, {"seconds", passed.count()}};
  };
}

}  // namespace

LabRanks::LabRanks(const jobs::Ranks& ranks, const std::string& key, Measure measure)
    : ranks_(ranks), key_(key), measure_(timed(std::move(measure))), tasks_(ranks, key) {}

void LabRanks::help() const { jobs::help_with_tasks(ranks_, key_, measure_); }

MeasureLabRuns LabRanks::on_all() {
  return [this](const std::vector<LabRun>& runs, const LabMeasured& done) {
    std::vector<Json> all;
    for (const LabRun& r : runs)
      all.push_back({{"arm", r.arm}, {"x", r.x}, {"rate", r.rate}, {"seed", r.seed}});
    tasks_.run(all, measure_, [&](size_t run, const Json& result) {
      std::vector<LabReading> readings;
      for (const Json& value : result["values"]) readings.push_back({value[0], value[1], value[2]});
      done(run, readings, result["seconds"]);
    });
  };
}

}  // namespace fovea::cli
