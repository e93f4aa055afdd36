#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/c.h"
#include "fovea/train/train.h"

namespace fovea::c {

// A training run that named options describe, as the options of `fovea train` do.
struct TrainRequest {
  model::Spec spec;
  train::TrainOptions options;
};

struct NamedOption {
  std::string name, help;
};
// Returns all options of training: "preset", "dropout", and the fields of TrainOptions and Spec.
const std::vector<NamedOption>& train_option_list();

// Starts from the preset and sets the options in order. Throws InvalidArgument for an unknown name
// or an invalid value.
TrainRequest train_request(const std::vector<fovea_option>& options);

}  // namespace fovea::c
