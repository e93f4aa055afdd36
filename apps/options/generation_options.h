#pragma once

#include <optional>
#include <string>

#include "fovea/generate.h"
#include "options/options.h"

namespace fovea::cli {

// How text is written: what `generate` and `chat` share. The program's defaults give way to the
// model's generation_config.json, and both to what was typed.
class GenerationOptions {
 public:
  void declare(OptionTable& table);
  // Once the model is known; UsageError for what cannot be.
  void settle(const Model& model, WeightPrecision precision, OptionTable& table);

  GenerateOptions options;
  std::optional<Model> draft;

 private:
  void declare_filters(OptionTable& table);
  void declare_penalties(OptionTable& table);
  void take_draft(WeightPrecision precision, const OptionTable& table);

  int64_t seed_ = -1, guesses_ = 0, draft_tokens_ = 4;
  bool greedy_ = false;
  std::string draft_;
  std::vector<std::string> biases_;
  std::vector<int64_t> stop_ids_;
};

// What became of the guesses, for the line at the end; empty where there were none.
std::string guesses_line(int64_t guessed, int64_t accepted);

}  // namespace fovea::cli
