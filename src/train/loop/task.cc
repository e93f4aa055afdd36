#include "loop/task.h"

#include <fmt/format.h>

#include "safetensors/safetensors.h"

namespace fovea::train {

void BadTensorSearch::look(const std::string& name, const Tensor& value) {
  if (!found_.empty() || !value) return;
  if (const int64_t bad = count_nonfinite(value); bad > 0)
    found_ = fmt::format("{} ({} of {})", name, bad, value.size());
}

void BadTensorSearch::weights(model::Transformer& model) {
  model.each([&](const std::string& name, model::Parameter& p) { look(name, p.value); });
}

void BadTensorSearch::gradients(model::Transformer& model) {
  model.each([&](const std::string& name, model::Parameter& p) {
    look("gradient of " + name, p.value.gradient());
  });
}

std::string TrainingObjective::first_bad_tensor(model::Transformer& model, int64_t) const {
  BadTensorSearch search;
  search.weights(model);
  search.gradients(model);
  return search.found();
}

}  // namespace fovea::train
