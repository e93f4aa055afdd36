#include "embed/pooling.h"

#include <cmath>

#include "base/error.h"
#include "fovea/core/excerpt.h"
#include "ops/ops.h"
#include "tensor/host_values.h"

namespace fovea::infer {
namespace {

// Returns the weights of the tokens [row.begin, row.end) in the weighted sum of a mode.
std::vector<double> weights_of(TokenPooling mode, Interval row) {
  const auto count = static_cast<double>(row.end - row.begin);
  const int64_t last = row.end - 1;
  double sum = 0;
  for (int64_t t = row.begin; t < row.end; ++t) sum += static_cast<double>(t + 1);
  std::vector<double> weights;
  for (int64_t t = row.begin; t < row.end; ++t) {
    switch (mode) {
      case TokenPooling::cls: weights.push_back(t == row.begin ? 1 : 0); break;
      case TokenPooling::last: weights.push_back(t == last ? 1 : 0); break;
      case TokenPooling::mean_sqrt_len: weights.push_back(1 / std::sqrt(count)); break;
      case TokenPooling::weighted_mean: weights.push_back(static_cast<double>(t + 1) / sum); break;
      default: weights.push_back(1 / count);
    }
  }
  return weights;
}

// Returns the sum of the tokens of each row, x [B, T, C] and weights [B, T] -> [B, C].
Tensor sum_of_tokens(const Tensor& x, const Tensor& weights) {
  const int64_t B = x.dim(0), T = x.dim(1), C = x.dim(2);
  const Tensor indices = tensor_from<int32_t>({B, T}, [](int64_t i) { return i; });
  return combine(x.view({B * T, C}), indices, weights);
}

Tensor weighted_sum(const Tensor& x, TokenPooling mode, const std::vector<Interval>& pooled) {
  const int64_t B = x.dim(0), T = x.dim(1);
  std::vector<float> weights(static_cast<size_t>(B * T));
  for (int64_t b = 0; b < B; ++b) {
    const Interval row = pooled[static_cast<size_t>(b)];
    int64_t t = b * T + row.begin;
    for (const double weight : weights_of(mode, row))
      weights[static_cast<size_t>(t++)] = static_cast<float>(weight);
  }
  return sum_of_tokens(x, tensor_of(weights, {B, T}, x.dtype()).to(x.device()));
}

template <class Number>
void indices_of_largest(const Number* x, Interval tokens, int64_t row, int64_t T, int64_t C,
                        int32_t* indices) {
  for (int64_t c = 0; c < C; ++c) {
    int64_t best = (row * T + tokens.begin) * C + c;
    for (int64_t t = tokens.begin + 1; t < tokens.end; ++t)
      if (const int64_t index = (row * T + t) * C + c; x[index] > x[best]) best = index;
    indices[row * C + c] = static_cast<int32_t>(best);
  }
}

// Finds the largest elements on the host, and looks them up in a table of all elements, so that
// they receive the gradient.
Tensor largest(const Tensor& x, const std::vector<Interval>& pooled) {
  const int64_t B = x.dim(0), T = x.dim(1), C = x.dim(2);
  check(x.size() <= INT32_MAX, "max pooling: {} elements; expected at most {} in one batch",
        x.size(), INT32_MAX);
  std::vector<int32_t> indices(static_cast<size_t>(B * C));
  const auto find = [&](const auto& values) {
    for (int64_t b = 0; b < B; ++b)
      indices_of_largest(values.all().data(), pooled[static_cast<size_t>(b)], b, T, C,
                         indices.data());
  };
  if (x.dtype() == DType::f64)
    find(HostValues<double>(x));
  else
    find(HostValues<float>(x));
  return gather(tensor_of(indices, {B, C}), x.view({x.size(), 1})).view({B, C});
}

}  // namespace

TokenPooling token_pooling_named(const std::string& name, const std::string& file) {
  if (name == "cls") return TokenPooling::cls;
  if (name == "max") return TokenPooling::max;
  if (name == "mean") return TokenPooling::mean;
  if (name == "mean_sqrt_len" || name == "mean_sqrt_len_tokens") return TokenPooling::mean_sqrt_len;
  if (name == "weightedmean") return TokenPooling::weighted_mean;
  if (name == "lasttoken") return TokenPooling::last;
  fail(ErrorKind::BadFile,
       "{}: unknown pooling_mode \"{}\"; expected cls, max, mean, mean_sqrt_len_tokens, "
       "weightedmean or lasttoken",
       file, excerpt(name));
}

const char* name_of(TokenPooling mode) {
  switch (mode) {
    case TokenPooling::cls: return "cls";
    case TokenPooling::max: return "max";
    case TokenPooling::mean: return "mean";
    case TokenPooling::mean_sqrt_len: return "mean_sqrt_len_tokens";
    case TokenPooling::weighted_mean: return "weightedmean";
    case TokenPooling::attention: return "attention";
    case TokenPooling::last: break;
  }
  return "lasttoken";
}

namespace {

// Returns the hidden states as f32 or f64, after a check of the intervals.
Tensor checked(const Tensor& hidden, const std::vector<Interval>& pooled) {
  check(hidden.rank() == 3 && static_cast<int64_t>(pooled.size()) == hidden.dim(0),
        "pooling: {} intervals for {}; expected B for [B, T, C]", pooled.size(), hidden.shape());
  for (size_t b = 0; b < pooled.size(); ++b)
    check(pooled[b].begin >= 0 && pooled[b].begin < pooled[b].end && pooled[b].end <= hidden.dim(1),
          "pooling: batch row {} has tokens [{}, {}) of {}; expected at least one", b,
          pooled[b].begin, pooled[b].end, hidden.dim(1));
  return cast(hidden, hidden.dtype() == DType::f64 ? DType::f64 : DType::f32);
}

}  // namespace

Tensor pool_tokens(const Tensor& hidden, TokenPooling mode, const std::vector<Interval>& pooled) {
  const Tensor x = checked(hidden, pooled);
  return mode == TokenPooling::max ? largest(x, pooled) : weighted_sum(x, mode, pooled);
}

Tensor attention_pooling(const Tensor& hidden, const Tensor& vector,
                         const std::vector<Interval>& pooled) {
  const Tensor x = checked(hidden, pooled);
  const int64_t B = x.dim(0), T = x.dim(1), C = x.dim(2);
  constexpr float kMasked = -1e30f;  // its exponential is 0
  std::vector<float> mask(static_cast<size_t>(B * T), kMasked);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = pooled[static_cast<size_t>(b)].begin; t < pooled[static_cast<size_t>(b)].end;
         ++t)
      mask[static_cast<size_t>(b * T + t)] = 0;
  const Tensor scores = linear(x, vector.view({1, C})).view({B, T});
  return sum_of_tokens(x, softmax(add(scores, tensor_of(mask, {B, T}, x.dtype()).to(x.device()))));
}

Tensor concat_width(const std::vector<Tensor>& x) {
  Tensor all = x.front();
  for (size_t i = 1; i < x.size(); ++i) {
    const int64_t B = all.dim(0), C = x[i].dim(1), parts = static_cast<int64_t>(i);
    all = concat_tokens(all.view({B, parts, C}), x[i].view({B, 1, C})).view({B, (parts + 1) * C});
  }
  return all;
}

// Uses an RMSNorm, which is x / sqrt(|x|^2 / C + epsilon) * weight.
Tensor unit_length(const Tensor& x) {
  constexpr double kShortest = 1e-12;
  const auto C = static_cast<double>(x.dim(-1));
  return rms_norm(x, full({x.dim(-1)}, 1 / std::sqrt(C), x.dtype(), x.device()),
                  static_cast<float>(kShortest * kShortest / C), x.dtype());
}

}  // namespace fovea::infer
