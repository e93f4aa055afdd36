#pragma once

#include <string>
#include <vector>

#include "fovea/embed.h"
#include "fovea/model.h"
#include "options/options.h"

namespace fovea::cli {

// Prints warnings about a model's files on standard error. If `strict`, throws BadFile for the
// first one.
void warn(const std::vector<std::string>& warnings);
extern bool strict;  // --strict

// Opens a model and prints the warnings about its files.
Model open_model(const std::string& folder, WeightPrecision precision = WeightPrecision::full,
                 CachePrecision cache = CachePrecision::automatic);

Embedder open_embedder(const std::string& folder, WeightPrecision precision);

// The choices of --dtype for the precision of a model's weights, and their values.
extern const std::vector<std::string> kWeightPrecisions;
inline WeightPrecision weight_precision(int choice) {
  return static_cast<WeightPrecision>(choice + static_cast<int>(WeightPrecision::stored));
}

// --cache-dtype; `value` is a CachePrecision.
Option cache_option(int& value);
inline CachePrecision cache_precision(int choice) { return static_cast<CachePrecision>(choice); }

}  // namespace fovea::cli
