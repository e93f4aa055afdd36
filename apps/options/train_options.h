#pragma once

#include <string>

#include "fovea/spec.h"
#include "fovea/train.h"
#include "options/options.h"

namespace fovea::cli {

// The options of `fovea train`: a preset, overridden by --config, overridden by other options.
struct TrainRequest {
  Spec spec;
  TrainOptions options;
  std::string preset = "nano";
  std::string config;
  double dropout = 0;
  bool dry_run = false, dump_config = false, inspect = false, show_example = false;

  void declare(OptionTable& table);
  void apply(OptionTable& table);

 private:
  void take_preset();
};

// Returns the contents of a --config file that requests the same run.
std::string config_of(const TrainRequest& request, const OptionTable& table);

}  // namespace fovea::cli
