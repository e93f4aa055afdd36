#include "model/grow_vocabulary.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace fovea {
namespace {

// Returns the rows of `old`, followed by rows that are their mean.
Tensor with_mean_rows(const Tensor& old, const Shape& shape) {
  const int64_t rows = old.dim(0), width = old.size() / rows;
  const Tensor grown = empty(shape, DType::f32);
  const float* const from = old.data_as<float>();
  float* const to = grown.data_as<float>();
  std::copy_n(from, old.size(), to);
  for (int64_t c = 0; c < width; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += from[r * width + c];
    const auto mean = static_cast<float>(sum / static_cast<double>(rows));
    for (int64_t r = rows; r < grown.dim(0); ++r) to[r * width + c] = mean;
  }
  return grown;
}

}  // namespace

void grow_vocabulary(Transformer& model, int64_t vocabulary) {
  const int64_t before = model.spec.vocabulary;
  check(vocabulary >= before, "vocabulary: {} tokens; expected at least the {} of the model",
        vocabulary, before);
  if (vocabulary == before) return;
  std::map<std::string, Tensor> values;
  model.each([&](const std::string& name, Parameter& p) { values[name] = p.value; });
  Spec spec = model.spec;
  spec.vocabulary = vocabulary;
  Transformer grown(spec);
  grown.each([&](const std::string& name, Parameter& p) {
    const Tensor& old = values.at(name);
    p.value = old.shape() == p.shape ? old : with_mean_rows(old, p.shape);
  });
  model = std::move(grown);
}

}  // namespace fovea
