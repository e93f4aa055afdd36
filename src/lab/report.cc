#include "lab/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/threads.h"
#include "fovea/doctor.h"
#include "kernels/isa.h"
#include "lab/table.h"

namespace fovea::lab {
namespace {

using Json = nlohmann::ordered_json;

// Returns null for the infinite bounds of a single value, which JSON lacks.
Json bound(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json as_json(const LabResult& result) {
  const ExperimentSummary& e = result.experiment;
  Json points = Json::array(), conclusions = Json::array();
  for (const LabPoint& p : result.points) {
    points.push_back({{"series", p.series},
                      {"x", p.x},
                      {"mean", p.mean},
                      {"low", bound(p.low)},
                      {"high", bound(p.high)},
                      {"values", p.values},
                      {"learning_rate", p.learning_rate}});
  }
  for (const Conclusion& c : result.conclusions)
    conclusions.push_back(
        {{"claim", c.claim}, {"verdict", name_of(c.verdict)}, {"sentence", c.sentence}});
  return {{"experiment", e.name},
          {"claims", e.claims},
          {"metric", e.metric},
          {"axis", e.axis},
          {"rule", e.rule},
          {"form", result.form == LabForm::brief ? "brief" : "full"},
          {"interval", "95%, Student's t over the seeds"},
          {"version", version()},
          {"machine", {{"cpu", cpu_name()}, {"threads", thread_count()}, {"isa", active_isa()}}},
          {"seconds", result.seconds},
          {"conclusions", conclusions},
          {"points", points}};
}

}  // namespace

std::string table_text(const LabResult& result) {
  std::set<double> places;
  Table table;
  for (const LabPoint& p : result.points) {
    places.insert(p.x);
    for (const double y : p.values) table.add(p.series, p.x, p.learning_rate, y);
  }
  table.finish();
  std::string text =
      fmt::format("{}, by {}; mean +- half of the 95% interval\n\n| {} |", result.experiment.metric,
                  result.experiment.axis, result.experiment.axis);
  const std::vector<std::string> series = table.series();
  for (const std::string& name : series) text += fmt::format(" {} |", name);
  text += "\n|---|";
  for (size_t i = 0; i < series.size(); ++i) text += "---|";
  for (const double x : places) {
    text += fmt::format("\n| {} |", x);
    for (const std::string& name : series) {
      const std::vector<double> own = table.places(name);
      const bool has = std::find(own.begin(), own.end(), x) != own.end();
      text += has ? fmt::format(" {} |", text_of(table.at(name, x))) : " |";
    }
  }
  return text + "\n";
}

void write_report(const LabResult& result, const Experiment& experiment) {
  write_file_atomically(result.out + "/result.json", pretty(as_json(result)));
  write_file_atomically(result.out + "/table.md", table_text(result));
  write_file_atomically(result.out + "/chart.svg", line_chart(result, experiment.logarithmic));
}

}  // namespace fovea::lab
