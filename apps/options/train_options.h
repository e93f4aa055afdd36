#pragma once

#include <string>

#include "fovea/model/spec.h"
#include "fovea/train/train.h"
#include "options/options.h"

namespace fovea::cli {

// The options of `fovea train`: a preset, overridden by --config, overridden by other options; or
// those of `fovea distil`, where the argument STUDENT replaces --from, --preset and --config.
struct TrainRequest {
  bool distils = false;
  model::Spec spec;
  train::TrainOptions options;
  std::string preset = "nano";
  std::string config;
  double dropout = 0;
  bool dry_run = false, dump_config = false, inspect = false, show_example = false;

  void declare(OptionTable& table);
  void apply(OptionTable& table);

 private:
  void declare_model(OptionTable& table);
  void choose_student(OptionTable& table);
  // `from_model`: the model exists, so that the rates and the length of the preset do not suit it.
  void take_preset(bool from_model);
  // Returns whether STUDENT is a model that exists.
  bool begins_with_model() const { return student_ != preset && student_ != config; }

  std::string student_;
};

// Returns the contents of a --config file that requests the same run.
std::string config_of(const TrainRequest& request, const OptionTable& table);

}  // namespace fovea::cli
