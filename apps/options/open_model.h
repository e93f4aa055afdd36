#pragma once

#include <string>
#include <vector>

#include "fovea/embed.h"
#include "fovea/model.h"
#include "options/options.h"

namespace fovea::cli {

// Tells on standard error what is odd about a model's files; if `strict`, the first of it is a
// BadFile.
void warn(const std::vector<std::string>& warnings);
extern bool strict;  // --strict

// Opens a model and tells on standard error what is odd about its files.
Model open_model(const std::string& folder, WeightPrecision precision = WeightPrecision::full,
                 CachePrecision cache = CachePrecision::automatic);

Embedder open_embedder(const std::string& folder, WeightPrecision precision);

// The choices of --dtype where it names the precision of a model's weights, and what they mean.
extern const std::vector<std::string> kWeightPrecisions;
inline WeightPrecision weight_precision(int choice) {
  return static_cast<WeightPrecision>(choice + static_cast<int>(WeightPrecision::stored));
}

// --cache-dtype; `value` is a CachePrecision.
Option cache_option(int& value);
inline CachePrecision cache_precision(int choice) { return static_cast<CachePrecision>(choice); }

}  // namespace fovea::cli
