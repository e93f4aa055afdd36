#pragma once

#include <string>
#include <vector>

#include "fovea/infer/embed.h"
#include "fovea/model/model.h"
#include "fovea/study/inspect.h"
#include "options/options.h"

namespace fovea::cli {

// Prints warnings about a model's files on standard error. If `strict`, throws BadFile for the
// first one.
void warn(const std::vector<std::string>& warnings);
extern bool strict;  // --strict

// --adapter DIR[:WEIGHT], which may be repeated; `typed` receives the values.
Option adapter_option(std::vector<std::string>& typed);
// Returns the adapters of these values. What follows the last colon is a weight if it is a number.
std::vector<model::AdapterUse> adapters_of(const std::vector<std::string>& typed);
// Returns a text that identifies the files of the adapters and their weights.
std::string identity_of(const std::vector<model::AdapterUse>& adapters);

// --mute LAYER.HEAD...; `typed` is the texts of the option.
Option mute_option(std::vector<std::string>& typed);
// Returns the model without the output of these heads.
model::Model without_heads(const model::Model& model, const std::vector<std::string>& typed);
// Returns the head of a text such as "3.5": layer 3, head 5. `option` names it in errors.
model::HeadIndex parse_head(const char* option, std::string_view text);

// --mmproj FILE
Option mmproj_option(std::string& file);

// Opens a model and prints the warnings about its files. `mmproj`: a file with an encoder of
// images; empty = the model's, if it has one.
model::Model open_model(const std::string& folder,
                        model::WeightPrecision precision = model::WeightPrecision::full,
                        std::optional<DType> cache = {},
                        const std::vector<model::AdapterUse>& adapters = {},
                        const std::string& mmproj = {});

infer::Embedder open_embedder(const std::string& folder, model::WeightPrecision precision,
                              const std::vector<model::AdapterUse>& adapters = {});

// The choices of --dtype for the precision of a model's weights, and their values.
extern const std::vector<std::string> kWeightPrecisions;
inline model::WeightPrecision weight_precision(int choice) {
  return static_cast<model::WeightPrecision>(choice +
                                             static_cast<int>(model::WeightPrecision::stored));
}

// --cache-dtype, and its type; unset = automatic.
Option cache_option(int& type);
std::optional<DType> cache_type(int type);

}  // namespace fovea::cli
