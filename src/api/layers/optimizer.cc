#include "fovea/nn/optimizer.h"

#include <cmath>

#include "base/error.h"
#include "optim/optimizer.h"

namespace fovea::nn {

struct Optimizer::Inside {
  std::vector<NamedParameter> parameters;
  fovea::train::Optimizer rules;
  int64_t steps = 0;
};

Optimizer::Optimizer(std::span<const NamedParameter> parameters,
                     const train::OptimizerOptions& options)
    : inside_(std::make_unique<Inside>(
          Inside{{parameters.begin(), parameters.end()}, fovea::train::Optimizer({}, options)})) {
  for (const auto& [name, parameter] : inside_->parameters) {
    check(parameter != nullptr && parameter->value, "{}: no values; expected a tensor", name);
    const fovea::model::Parameter kind(parameter->value.shape(),
                                       parameter->decays ? model::Role::matrix : model::Role::bias);
    inside_->rules.add(name, *parameter, kind);
  }
}
Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

double Optimizer::step(double rate) {
  const double norm = inside_->rules.gradient_norm();
  if (std::isfinite(norm))
    inside_->rules.update(++inside_->steps, rate, norm);
  else
    inside_->rules.clear_gradients();
  return norm;
}

int64_t Optimizer::steps() const { return inside_->steps; }

std::map<std::string, Tensor> Optimizer::state() const { return inside_->rules.state(); }

void Optimizer::restore(const std::map<std::string, Tensor>& state, int64_t steps) {
  std::vector<NamedParameter> all;
  for (const auto& [name, tensor] : inside_->rules.state())
    all.push_back({name, std::make_shared<Parameter>(Parameter{tensor})});
  assign(all, state);
  inside_->steps = steps;
}

}  // namespace fovea::nn
