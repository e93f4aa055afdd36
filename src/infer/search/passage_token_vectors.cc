#include "search/passage_token_vectors.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/threads.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

constexpr int64_t kTokensAtOnce = 4096;  // of one product with the query

}  // namespace

PassageTokenVectors::PassageTokenVectors(const std::vector<Tensor>& passages, int64_t width)
    : starts_(zeros({std::ssize(passages) + 1}, DType::i64)) {
  int64_t* starts = starts_.data_as<int64_t>();
  for (size_t i = 0; i < passages.size(); ++i) starts[i + 1] = starts[i] + passages[i].dim(0);
  values_ = empty({starts[passages.size()], width});
  for (size_t i = 0; i < passages.size(); ++i)
    std::copy_n(passages[i].data_as<float>(), passages[i].size(),
                values_.data_as<float>() + starts[i] * width);
}

PassageTokenVectors::PassageTokenVectors(const SafeTensors& file, const std::string& path,
                                         int64_t width, int64_t passages)
    : starts_(file.tensor("starts")), values_(file.tensor("values")) {
  const auto expect = [&](bool holds, const char* wrong) {
    if (holds) return;
    fail(ErrorKind::BadFile, "{}: {}; expected vectors of {} elements for {} passages", path, wrong,
         width, passages);
  };
  expect(starts_.dtype() == DType::i64 && starts_.shape() == Shape{passages + 1},
         "starts has another type or shape");
  const std::span starts(starts_.data_as<int64_t>(), static_cast<size_t>(starts_.size()));
  expect(starts.front() == 0 && std::ranges::is_sorted(starts),
         "its passages do not follow one another");
  expect(values_.dtype() == DType::f32 && values_.shape() == Shape{starts.back(), width},
         "values has another type or shape");
  expect(count_nonfinite(values_) == 0, "a vector is not finite");
}

std::map<std::string, Tensor> PassageTokenVectors::tensors() const {
  return {{"starts", starts_}, {"values", values_}};
}

Tensor PassageTokenVectors::rows(int64_t passage) const {
  const int64_t* starts = starts_.data_as<int64_t>();
  return values_.rows(starts[passage], starts[passage + 1]);
}

std::vector<float> PassageTokenVectors::sums(const Tensor& query) const {
  const NoGradient off;
  const int64_t passages = starts_.size() - 1, Q = query.dim(0), N = values_.dim(0);
  // largest[i, q]: the greatest product of the query's vector q with a vector of passage i
  const Tensor largest = full({passages, Q}, -INFINITY);
  const int64_t* starts = starts_.data_as<int64_t>();
  for (int64_t begin = 0; begin < N && Q > 0; begin += kTokensAtOnce) {
    const int64_t end = std::min(N, begin + kTokensAtOnce);
    const Tensor products = linear(values_.rows(begin, end), query, {});  // [tokens, Q]
    int64_t passage = std::upper_bound(starts, starts + passages, begin) - starts - 1;
    for (int64_t t = begin; t < end; ++t) {
      while (t >= starts[passage + 1]) ++passage;
      const float* row = products.data_as<float>() + (t - begin) * Q;
      float* most = largest.data_as<float>() + passage * Q;
      for (int64_t q = 0; q < Q; ++q) most[q] = std::max(most[q], row[q]);
    }
  }
  std::vector<float> sums(static_cast<size_t>(passages));
  for (int64_t i = 0; i < passages; ++i) {
    if (starts[i] == starts[i + 1]) continue;
    double sum = 0;
    for (int64_t q = 0; q < Q; ++q) sum += largest.data_as<float>()[i * Q + q];
    sums[static_cast<size_t>(i)] = static_cast<float>(sum);
  }
  return sums;
}

}  // namespace fovea::infer
