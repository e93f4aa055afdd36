#include "cli/reports/similarity.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "fovea/infer/metrics.h"

namespace fovea::cli {

std::string similarity_report(const infer::Embedder& embedder, const std::string& pairs,
                              const infer::EmbedOptions& options, bool json) {
  const infer::SimilarityEvaluation r = infer::evaluate_similarity(embedder, pairs, options);
  nlohmann::ordered_json object = {{"pairs", r.pairs}};
  std::string rows = fmt::format("{:<10}{}\n", "pairs", r.pairs);
  for (const infer::Metric& metric : infer::evaluation_task("similarity").metrics) {
    const double value = infer::value_of(r.metrics, metric.name).value();
    object[metric.name] = value;
    rows += fmt::format("{:<10}{:.{}f}\n", metric.title, value, metric.decimals);
  }
  return json ? object.dump() + "\n" : rows;
}

std::string poolings_report(const infer::Embedder& embedder, const std::string& pairs,
                            const infer::EmbedOptions& options, bool json) {
  const std::vector<infer::Metric>& metrics = infer::evaluation_task("similarity").metrics;
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  std::string rows = fmt::format("{:<22}", "pooling");
  for (const infer::Metric& metric : metrics) rows += fmt::format("{:>10}", metric.title);
  rows += '\n';
  for (const infer::PoolingEvaluation& e : infer::evaluate_poolings(embedder, pairs, options)) {
    object["pairs"] = e.result.pairs;
    nlohmann::ordered_json values = {{"own", e.own}};
    rows += fmt::format("{:<22}", e.pooling + (e.own ? " (the model's)" : ""));
    for (const infer::Metric& metric : metrics) {
      const double value = infer::value_of(e.result.metrics, metric.name).value();
      values[metric.name] = value;
      rows += fmt::format("{:>10.{}f}", value, metric.decimals);
    }
    object["poolings"][e.pooling] = values;
    rows += '\n';
  }
  return json ? object.dump() + "\n" : rows;
}

}  // namespace fovea::cli
