#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/c.h"
#include "fovea/train.h"

namespace fovea::c {

// A training run as named options describe it, like the options of `fovea train`.
struct TrainRequest {
  Spec spec;
  TrainOptions options;
};

struct NamedOption {
  std::string name, help;
};
// Every option of training, in the order of their descriptions.
const std::vector<NamedOption>& train_option_list();

// Starts from the preset and sets the options in order. Throws InvalidArgument for an unknown name
// or an invalid value.
TrainRequest train_request(const std::vector<fovea_option>& options);

}  // namespace fovea::c
