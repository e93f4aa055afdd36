#include "lab/result_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/machine.h"
#include "fovea/core/machine.h"
#include "lab/experiment.h"
#include "lab/table.h"

namespace fovea {
namespace lab {
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
  return {
      {"experiment", e.name},
      {"claims", e.claims},
      {"metric", e.metric},
      {"axis", e.axis},
      {"rule", e.rule},
      {"rule_hash", rule_hash(e)},
      {"form", result.form == LabForm::brief ? "brief" : "full"},
      {"interval", "95%, Student's t over the seeds"},
      {"version", version()},
      {"machine", {{"cpu", cpu_name()}, {"threads", thread_count()}, {"isa", instruction_set()}}},
      {"seconds", result.seconds},
      {"conclusions", conclusions},
      {"points", points}};
}

const nlohmann::json& list_of(const nlohmann::json& object, const char* key,
                              const std::string& path) {
  if (!object.contains(key) || !object[key].is_array())
    fail(ErrorKind::BadFile, "{}: no list \"{}\"; expected the result.json of an experiment", path,
         key);
  return object[key];
}

Table table_of(const nlohmann::json& result, const std::string& path) {
  Table table;
  for (const nlohmann::json& point : list_of(result, "points", path)) {
    const std::string series = get_string(point, "series", path);
    const double x = get_float(point, "x", path), rate = get_float(point, "learning_rate", path);
    const nlohmann::json& values = list_of(point, "values", path);
    if (values.empty())
      fail(ErrorKind::BadFile, "{}: {} at {} has no values; expected one per seed", path, series,
           x);
    for (const nlohmann::json& y : values) {
      if (!y.is_number())
        fail(ErrorKind::BadFile, "{}: {} at {} is {}; expected numbers", path, series, x, brief(y));
      table.add(series, x, rate, y.get<double>());
    }
  }
  table.finish();
  return table;
}

const Experiment& experiment_of(const nlohmann::json& result, const std::string& path) {
  const std::string name = get_string(result, "experiment", path);
  for (const Experiment& experiment : all_experiments())
    if (experiment.summary.name == name) return experiment;
  fail(ErrorKind::BadFile, "{}: \"{}\" is not an experiment of this program; see fovea lab list",
       path, name);
}

std::vector<Conclusion> voided(const ExperimentSummary& experiment) {
  std::vector<Conclusion> conclusions;
  for (const std::string& claim : experiment.claims)
    conclusions.push_back({claim, Verdict::voided, "void: the rule changed"});
  return conclusions;
}

}  // namespace

std::string result_text(const LabResult& result) { return pretty(as_json(result)); }

}  // namespace lab

std::string rule_hash(const ExperimentSummary& experiment) {
  return hash_text(hash_bytes(experiment.rule));
}

LabResult judge_result(const std::string& path) {
  const nlohmann::json json = read_json(path);
  const lab::Experiment& experiment = lab::experiment_of(json, path);
  const lab::Table table = lab::table_of(json, path);
  LabResult result;
  result.experiment = experiment.summary;
  result.form = get_string(json, "form", path) == "full" ? LabForm::full : LabForm::brief;
  result.out = path;
  result.points = table.points();
  result.seconds = get_float(json, "seconds", path, 0);
  if (get_string(json, "rule", path) != experiment.summary.rule ||
      find_string(json, "rule_hash", path) != rule_hash(experiment.summary)) {
    result.conclusions = lab::voided(experiment.summary);
    return result;
  }
  try {
    result.conclusions = experiment.conclude(table);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Internal) throw;
    fail(ErrorKind::BadFile, "{}: {}; expected the points of this experiment", path, error.what());
  }
  return result;
}

}  // namespace fovea
