#include "cli/verbs/eval_vectors.h"

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/ordered_json.h"
#include "cli/reports/estimate.h"
#include "fovea/open.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "options/text_scorer.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;
using Estimates = std::vector<std::pair<std::string, infer::Estimate>>;

// Returns the result of measure(progress), with a line of progress; unset if it was stopped.
template <class Measure>
auto with_progress(const Measure& measure) {
  catch_signals();
  ProgressLine line;
  std::optional<decltype(measure(std::function<bool(double)>()))> result;
  try {
    result = measure([&](double fraction) {
      line.show(fraction, "measuring", fmt::format("measured {:.0f}%", 100 * fraction));
      return !stop_requested();
    });
  } catch (const Error&) {
    if (!stop_requested()) throw;
  }
  line.clear();
  if (result)
    for (const std::string& text : result->notes) note("note: " + printable(text) + "\n");
  return result;
}

Json metrics_json(const Estimates& metrics) {
  Json json = Json::object();
  for (const auto& [name, estimate] : metrics) json[name] = json_of(estimate);
  return json;
}

std::string sentences_text(const study::SentenceEvaluation& result) {
  size_t width = 4;  // of the names of files
  for (const study::SentenceScores& scores : result.scores)
    width = std::max(width, printable(scores.file).size());
  std::string out;
  const auto row = [&](const std::string& file, const std::string& task, const std::string& records,
                       const std::string& metric, const std::string& value) {
    out += fmt::format("{:<{}}  {:<14}{:<9}{:<20}{}\n", file, width, task, records, metric, value);
  };
  row("file", "task", "records", "metric", "value (95% interval)");
  for (const study::SentenceScores& scores : result.scores)
    for (const auto& [name, estimate] : scores.metrics)
      row(printable(scores.file), scores.task, fmt::format("{}", scores.records), name,
          text_of(estimate));
  return out;
}

std::string sentences_json(const study::SentenceEvaluation& result) {
  Json json = Json::array();
  for (const study::SentenceScores& scores : result.scores)
    json.push_back({{"file", scores.file},
                    {"task", scores.task},
                    {"records", scores.records},
                    {"metrics", metrics_json(scores.metrics)}});
  return json_line({{"objective", "sentences"}, {"scores", json}}) + "\n";
}

}  // namespace

void VectorsRequest::declare(OptionTable& table) {
  add_fields(table, retrieval_,
             {{.field = "files",
               .name = "--retrieval",
               .placeholder = "FILE...",
               .section = "Retrieval (data sets with the layout of BEIR)",
               .most = 3},
              {.field = "run_out", .placeholder = "FILE"},
              {.field = "bootstrap", .omitted = true},
              {.field = "seed", .omitted = true}});
  table.add(of_model(as("DIR", text("--rerank", {"--reranker"},
                                    "sort the documents found by a cross-encoder or a late "
                                    "interaction model",
                                    reranker_))));
  add_fields(table, sentences_,
             {{.field = "sentences",
               .placeholder = "FILE...",
               .section = "Sets of sentences",
               .most = kMostFiles},
              {.field = "bootstrap", .omitted = true},
              {.field = "seed", .omitted = true}});
}

void VectorsRequest::use_intervals(const study::ProbeOptions& options) {
  retrieval_.bootstrap = sentences_.bootstrap = options.bootstrap;
  retrieval_.seed = sentences_.seed = options.seed;
}

int VectorsRequest::run_retrieval(const std::string& folder, model::WeightPrecision precision,
                                  const std::vector<model::AdapterUse>& adapters, bool json) {
  if (!reranker_.empty())
    retrieval_.reranker = [score = open_scorer(reranker_)](const std::string& query,
                                                           const std::vector<std::string>& texts) {
      return score(query, texts, {});
    };
  const auto measure = [&](const auto& model) {
    return with_progress([&](const std::function<bool(double)>& progress) {
      return infer::evaluate_retrieval(model, retrieval_, progress);
    });
  };
  const auto opened = [&](const auto& model) {
    warn(model.warnings());
    return measure(model);
  };
  const ModelUse use = model_use(folder);
  const auto result = use == ModelUse::sparse
                          ? opened(infer::SparseEmbedder::open(folder, precision, adapters))
                      : use == ModelUse::multi_vector
                          ? opened(infer::MultiVectorEmbedder::open(folder, precision, adapters))
                          : measure(open_embedder(folder, precision, adapters));
  if (!result) return stop_code();
  if (json)
    print(json_line({{"objective", "retrieval"},
                     {"queries", result->queries},
                     {"documents", result->documents},
                     {"metrics", metrics_json(result->metrics)}}) +
          "\n");
  else
    print(retrieval_text(*result));
  return 0;
}

// One row for each metric, with a column for each cutoff; the last metric has none.
std::string VectorsRequest::retrieval_text(const infer::RetrievalEvaluation& result) const {
  constexpr const char* kTitles[] = {"NDCG", "MAP", "recall", "precision", "MRR"};
  constexpr int kWidth = 28;
  std::string out = fmt::format("{:<11}{}\n{:<11}{}\n{:<11}", "queries", result.queries,
                                "documents", result.documents, "");
  for (const int64_t k : retrieval_.cutoffs)
    out += fmt::format("{:<{}}", fmt::format("at {}", k), kWidth);
  out += "all\n";
  const size_t columns = retrieval_.cutoffs.size();
  for (size_t row = 0; row < std::size(kTitles); ++row) {
    out += fmt::format("{:<11}", kTitles[row]);
    for (size_t column = 0; column < columns; ++column)
      out += fmt::format("{:<{}}",
                         text_of(result.metrics[column * std::size(kTitles) + row].second), kWidth);
    if (row == 1) out += text_of(result.metrics.back().second);
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  }
  return out;
}

int VectorsRequest::run_sentences(const infer::Embedder& embedder, bool json) const {
  const auto result = with_progress([&](const std::function<bool(double)>& progress) {
    return study::evaluate_sentences(embedder, sentences_, progress);
  });
  if (!result) return stop_code();
  print(json ? sentences_json(*result) : sentences_text(*result));
  return 0;
}

}  // namespace fovea::cli
