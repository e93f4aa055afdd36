#include "lab/linear_classifier.h"

#include "fovea/nn.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

Tensor rows_of(const Classified& all) {
  const int64_t count = std::ssize(all.labels);
  return tensor_of(all.rows, {count, std::ssize(all.rows) / count});
}

}  // namespace

double linear_accuracy(const Classified& learned, const Classified& unseen, int64_t classes) {
  constexpr int64_t kFittingSteps = 1000;
  constexpr double kFittingRate = 0.1;
  const Tensor x = rows_of(learned);
  const auto count = static_cast<float>(learned.labels.size());
  const Tensor labels = tensor_of(learned.labels, {x.dim(0)});
  const nn::Layer classifier = nn::linear(x.dim(1), classes, true, 1, 0);
  nn::Optimizer optimizer(classifier.parameters(), {.weight_decay = 0, .clip = 0});
  const Tensor weight = classifier.parameters()[0].parameter->value;
  for (int64_t step = 0; step < kFittingSteps; ++step) {
    const Tensor squares = scale(sum(multiply(weight, weight)), 0.5f / count);
    backward(add(cross_entropy(classifier(x), labels), cast(squares, DType::f64)));
    optimizer.step(kFittingRate * (1 - static_cast<double>(step) / kFittingSteps));
  }
  const NoGradient off;
  const std::vector<int32_t> found = most_likely(classifier(rows_of(unseen)));
  double right = 0;
  for (size_t i = 0; i < found.size(); ++i) right += found[i] == unseen.labels[i];
  return right / static_cast<double>(found.size());
}

}  // namespace fovea::lab
