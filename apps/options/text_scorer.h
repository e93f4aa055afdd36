#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fovea/infer/embed.h"
#include "fovea/infer/retrieval.h"

namespace fovea::cli {

// Scores how well texts answer a query; greater = better.
using TextScorer = std::function<std::vector<float>(
    const std::string& query, const std::vector<std::string>& texts, const infer::RerankOptions&)>;

// Opens a cross-encoder or a late interaction model, and prints the warnings about its files.
TextScorer open_scorer(const std::string& folder,
                       model::WeightPrecision precision = model::WeightPrecision::stored,
                       const std::vector<model::AdapterUse>& adapters = {});

}  // namespace fovea::cli
