#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fovea/embed.h"
#include "fovea/retrieval.h"

namespace fovea::cli {

// Scores how well texts answer a query; greater = better.
using TextScorer = std::function<std::vector<float>(
    const std::string& query, const std::vector<std::string>& texts, const RerankOptions&)>;

// Opens a cross-encoder or a late interaction model, and prints the warnings about its files.
TextScorer open_scorer(const std::string& folder,
                       WeightPrecision precision = WeightPrecision::stored,
                       const std::vector<AdapterUse>& adapters = {});

}  // namespace fovea::cli
