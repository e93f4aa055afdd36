#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "fovea/core/tensor.h"

namespace fovea::nn {

// A tensor that training changes.
struct Parameter {
  Tensor value;
  bool trainable = true;  // an optimiser updates it
  bool decays = true;     // with weight decay; usual for matrices, not for gains and biases
};

struct NamedParameter {
  std::string name;  // such as "attention.query.weight"
  std::shared_ptr<Parameter> parameter;
};

// The values of parameters by their names, for write_safetensors().
std::map<std::string, Tensor> values(std::span<const NamedParameter> parameters);
// Copies values into parameters of the same names. Throws InvalidArgument, with the name, if one is
// missing or has another shape.
void assign(std::span<const NamedParameter> parameters,
            const std::map<std::string, Tensor>& values);

}  // namespace fovea::nn
