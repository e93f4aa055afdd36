#include "cli/reports/similarity.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "fovea/metrics.h"

namespace fovea::cli {

std::string similarity_report(const Embedder& embedder, const std::string& pairs,
                              const EmbedOptions& options, bool json) {
  const SimilarityEvaluation r = evaluate_similarity(embedder, pairs, options);
  nlohmann::ordered_json object = {{"pairs", r.pairs}};
  std::string rows = fmt::format("{:<10}{}\n", "pairs", r.pairs);
  for (const Metric& metric : evaluation_task("similarity").metrics) {
    const double value = value_of(r.metrics, metric.name).value();
    object[metric.name] = value;
    rows += fmt::format("{:<10}{:.{}f}\n", metric.title, value, metric.decimals);
  }
  return json ? object.dump() + "\n" : rows;
}

std::string poolings_report(const Embedder& embedder, const std::string& pairs,
                            const EmbedOptions& options, bool json) {
  const std::vector<Metric>& metrics = evaluation_task("similarity").metrics;
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  std::string rows = fmt::format("{:<22}", "pooling");
  for (const Metric& metric : metrics) rows += fmt::format("{:>10}", metric.title);
  rows += '\n';
  for (const PoolingEvaluation& e : evaluate_poolings(embedder, pairs, options)) {
    object["pairs"] = e.result.pairs;
    nlohmann::ordered_json values = {{"own", e.own}};
    rows += fmt::format("{:<22}", e.pooling + (e.own ? " (the model's)" : ""));
    for (const Metric& metric : metrics) {
      const double value = value_of(e.result.metrics, metric.name).value();
      values[metric.name] = value;
      rows += fmt::format("{:>10.{}f}", value, metric.decimals);
    }
    object["poolings"][e.pooling] = values;
    rows += '\n';
  }
  return json ? object.dump() + "\n" : rows;
}

}  // namespace fovea::cli
