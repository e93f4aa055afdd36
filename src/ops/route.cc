#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tensor.h"

namespace fovea {
namespace {

// Chooses the k largest logits one after the other. Comparisons with NaN are false, so a NaN is
// chosen only if it is the first of the remaining logits; every choice is a valid expert.
void choose(int32_t* chosen, const double* logits, int64_t experts, int64_t k) {
  std::vector<bool> taken(static_cast<size_t>(experts));
  for (int64_t j = 0; j < k; ++j) {
    int64_t best = -1;
    for (int64_t e = 0; e < experts; ++e) {
      if (!taken[static_cast<size_t>(e)] && (best < 0 || logits[e] > logits[best])) best = e;
    }
    taken[static_cast<size_t>(best)] = true;
    chosen[j] = static_cast<int32_t>(best);
  }
}

}  // namespace

Routing route(const Tensor& logits, int64_t k, bool normalise) {
  check(logits.rank() == 2 && k > 0 && k <= logits.dim(1),
        "route: {} choices of logits {}; expected [R, E] and 1 to E choices", k, logits.shape());
  const int64_t rows = logits.dim(0), width = logits.dim(1);
  Tensor experts = empty({rows, k}, DType::i32);
  const Tensor numbers = convert(logits, DType::f64);
  for (int64_t r = 0; r < rows; ++r) {
    choose(experts.data_as<int32_t>() + r * k, numbers.data_as<double>() + r * width, width, k);
  }
  // The softmax over the chosen logits equals the chosen weights divided by their sum.
  Tensor weights = normalise ? softmax(pick(logits, experts)) : pick(softmax(logits), experts);
  return {weights, experts};
}

}  // namespace fovea
