#pragma once

#include <string>

#include "fovea/generate.h"
#include "options.h"

namespace fovea::cli {

// How text is written: what `generate` and `chat` share. The program's defaults give way to the
// model's generation_config.json, and both to what was typed.
class GenerationOptions {
 public:
  void declare(OptionTable& table);
  // Once the model is known; UsageError for what cannot be.
  void settle(const Model& model, OptionTable& table);

  GenerateOptions options;

 private:
  void declare_filters(OptionTable& table);
  void declare_penalties(OptionTable& table);

  int64_t seed_ = -1;
  bool greedy_ = false;
  std::vector<std::string> biases_;
  std::vector<int64_t> stop_ids_;
};

}  // namespace fovea::cli
