#pragma once

#include <optional>
#include <string>

#include "fovea/infer/generate.h"
#include "options/grammar_options.h"
#include "options/options.h"

namespace fovea::cli {

// The generation options of `generate` and `chat`. The model's generation_config.json overrides the
// program's defaults; typed options override both.
class GenerationOptions {
 public:
  // Declares an option for each field of `options` except `omitted`.
  void declare(OptionTable& table, const std::vector<std::string>& omitted = {});
  // Applies typed options to the model's defaults, chooses a seed and opens the draft model. Throws
  // UsageError for invalid combinations.
  void settle(const model::Model& model, model::WeightPrecision precision, OptionTable& table);
  // Changes an option after settle(), by its name or an alias without the dashes. Throws
  // UsageError, and InvalidArgument if the value is out of range.
  void change(OptionTable& table, const std::string& name, const std::string& value);
  // Returns "name value" of the options that change() accepts, one per line.
  static std::string changeable(const OptionTable& table);

  GrammarOptions grammar;
  infer::GenerateOptions options;
  std::optional<model::Model> draft;

 private:
  void declare_draft(OptionTable& table);
  void take_draft(model::WeightPrecision precision, const OptionTable& table);
  void take_sampling();

  int64_t seed_ = -1, draft_tokens_ = -1;
  bool greedy_ = false;
  std::string draft_;
  std::vector<std::string> biases_;
};

// Returns a summary of speculative tokens; empty if there were none, or none were requested.
std::string speculation_line(const OptionTable& table, int64_t speculative, int64_t accepted);

}  // namespace fovea::cli
