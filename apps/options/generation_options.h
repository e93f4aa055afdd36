#pragma once

#include <optional>
#include <string>

#include "fovea/generate.h"
#include "options/options.h"

namespace fovea::cli {

// The generation options of `generate` and `chat`. The model's generation_config.json overrides the
// program's defaults; typed options override both.
class GenerationOptions {
 public:
  void declare(OptionTable& table);
  // Applies typed options to the model's defaults. Throws UsageError for invalid combinations.
  void settle(const Model& model, WeightPrecision precision, OptionTable& table);

  GenerateOptions options;
  std::optional<Model> draft;

 private:
  void declare_length(OptionTable& table);
  void declare_filters(OptionTable& table);
  void declare_penalties(OptionTable& table);
  void declare_speculation(OptionTable& table);
  void take_draft(WeightPrecision precision, const OptionTable& table);

  int64_t seed_ = -1, guesses_ = 0, draft_tokens_ = 4;
  bool greedy_ = false;
  std::string draft_;
  std::vector<std::string> biases_;
  std::vector<int64_t> stop_ids_;
};

// Returns a summary of speculative tokens; empty if there were none.
std::string guesses_line(int64_t guessed, int64_t accepted);

}  // namespace fovea::cli
