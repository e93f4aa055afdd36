#include "transformer/grow_vocabulary.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace fovea::model {
namespace {

// Returns the first `rows` rows of `old`, followed by rows that are their mean.
Tensor with_mean_rows(const Tensor& old, const Shape& shape, int64_t rows) {
  const int64_t width = old.size() / old.dim(0);
  const Tensor grown = empty(shape, DType::f32);
  const float* const from = old.data_as<float>();
  float* const to = grown.data_as<float>();
  std::copy_n(from, rows * width, to);
  for (int64_t c = 0; c < width; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += from[r * width + c];
    const auto mean = static_cast<float>(sum / static_cast<double>(rows));
    for (int64_t r = rows; r < grown.dim(0); ++r) to[r * width + c] = mean;
  }
  return grown;
}

}  // namespace

void grow_vocabulary(Transformer& model, int64_t vocabulary, int64_t known) {
  const int64_t before = model.spec.vocabulary;
  check(vocabulary >= before, "vocabulary: {} tokens; expected at least the {} of the model",
        vocabulary, before);
  if (vocabulary == known) return;
  std::map<std::string, Tensor> values;
  model.each([&](const std::string& name, Parameter& p) { values[name] = p.value; });
  Spec spec = model.spec;
  spec.vocabulary = vocabulary;
  Transformer grown(spec);
  ++spec.vocabulary;
  Transformer larger(spec);
  std::map<std::string, Shape> larger_shapes;
  larger.each([&](const std::string& name, Parameter& p) { larger_shapes[name] = p.shape; });
  grown.each([&](const std::string& name, Parameter& p) {
    const bool has_tokens = larger_shapes.at(name) != p.shape;
    p.value = has_tokens ? with_mean_rows(values.at(name), p.shape, known) : values.at(name);
  });
  model = std::move(grown);
}

}  // namespace fovea::model
