#include "loop/task.h"

#include <fmt/format.h>

#include "safetensors/safetensors.h"

namespace fovea {

void BadTensorSearch::look(const std::string& name, const Tensor& value) {
  if (!found_.empty() || !value) return;
  if (const int64_t bad = count_nonfinite(value); bad > 0)
    found_ = fmt::format("{} ({} of {})", name, bad, value.size());
}

void BadTensorSearch::weights(Transformer& model) {
  model.each([&](const std::string& name, Parameter& p) { look(name, p.value); });
}

void BadTensorSearch::gradients(Transformer& model) {
  model.each([&](const std::string& name, Parameter& p) {
    look("gradient of " + name, p.value.gradient());
  });
}

std::string TrainingTask::first_bad_tensor(Transformer& model, int64_t) const {
  BadTensorSearch search;
  search.weights(model);
  search.gradients(model);
  return search.found();
}

}  // namespace fovea
