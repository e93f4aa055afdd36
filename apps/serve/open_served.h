#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/served_model.h"

namespace fovea::serve {

struct ServedOptions {
  std::string name;           // in the API
  std::string template_file;  // a chat template instead of the model's own
  std::string languages;      // "de-en", of a translation model; empty = as its files say
  std::string draft;          // a smaller model that guesses ahead; empty = none
  int64_t draft_tokens = 0;   // that it guesses at a time
  WeightPrecision precision = WeightPrecision::stored;
  CachePrecision cache = CachePrecision::automatic;
  EngineOptions engine;
  double most_seconds = 0;  // see ServedModel
  SamplingFlags flags;
};

// Opens a model for what it can do: a cross-encoder scores pairs, a decoder with a language head
// writes, and everything else makes vectors. `warn` receives what is odd about its files.
std::shared_ptr<ServedModel> open_served(const std::string& folder, const ServedOptions& options,
                                         const std::function<void(const std::string&)>& warn);

}  // namespace fovea::serve
