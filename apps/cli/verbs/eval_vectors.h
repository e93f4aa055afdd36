#pragma once

#include <string>
#include <vector>

#include "fovea/infer/evaluate_retrieval.h"
#include "fovea/study/evaluate_sentences.h"
#include "fovea/study/linear_probe.h"
#include "options/options.h"

namespace fovea::cli {

// Measures vectors on data sets: fovea eval --retrieval and --sentences.
class VectorsRequest {
 public:
  void declare(OptionTable& table);
  // Takes the number of bootstrap samples and the seed of the probe, whose options they are.
  void use_intervals(const study::ProbeOptions& options);
  int run_retrieval(const std::string& model, model::WeightPrecision precision,
                    const std::vector<model::AdapterUse>& adapters, bool json);
  int run_sentences(const infer::Embedder& embedder, bool json) const;

 private:
  std::string retrieval_text(const infer::RetrievalEvaluation& result) const;

  infer::RetrievalData retrieval_;
  study::SentenceData sentences_;
  std::string reranker_;
};

}  // namespace fovea::cli
