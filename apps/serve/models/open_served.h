#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/models/served_model.h"

namespace fovea::serve {

// An adapter of a served model: a model of the API that shares the weights of its base.
struct ServedAdapter {
  std::string name;  // name in the API
  model::AdapterUse use;
};

struct ServedOptions {
  std::string name;  // name in the API
  std::vector<ServedAdapter> adapters = {};
  std::string tool_format = {};   // of calls; empty: what the chat template has
  int64_t reasoning_tokens = -1;  // the default of requests; -1 = no limit
  std::string template_file;      // chat template to use instead of the model's
  std::string languages;      // of a translation model, such as "de-en"; empty = as in its files
  std::string draft;          // directory of a draft model for speculative tokens; empty = none
  std::string mmproj;         // file with the encoder of images; empty = the model's, if it has one
  int64_t draft_tokens = -1;  // speculative tokens per pass, with a draft; -1 = automatic
  model::WeightPrecision precision = model::WeightPrecision::stored;
  std::optional<DType> cache = {};  // unset = automatic
  infer::EngineOptions engine;
  double most_seconds = 0;                  // limit per request; 0 = unlimited
  std::optional<model::Model> opened = {};  // the model of `folder`, if it is open already
  std::function<void(infer::GenerateOptions&)>
      set_requests;  // overrides the model's defaults; may be empty
};

// Opens a model by its capability: a cross-encoder scores pairs, a decoder with a language-model
// head generates text, any other model computes vectors. Returns the model, followed by its
// adapters, which only models that generate text may have. `warn` receives warnings about its
// files.
std::vector<std::shared_ptr<ServedModel>> open_served(
    const std::string& folder, const ServedOptions& options,
    const std::function<void(const std::string&)>& warn);

// Returns the name in the API of the model at a path: that of the directory, or of a .gguf file
// without its ending.
std::string served_name(const std::string& path);

}  // namespace fovea::serve
