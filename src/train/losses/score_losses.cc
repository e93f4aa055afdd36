#include "losses/score_losses.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/math.h"
#include "ops/largest_products.h"
#include "ops/ops.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

using Labels = std::vector<float>;

Tensor constant_for(const Tensor& scores, const Labels& numbers, const char* loss) {
  check(scores.rank() == 2 && scores.size() == std::ssize(numbers),
        "{}: scores are {} with {} numbers; expected as many", loss, scores.shape(),
        numbers.size());
  return tensor_of(numbers, scores.shape(), scores.dtype()).to(scores.device());
}

// Returns the logarithm of the softmax of each row.   [B, K] -> [B, K]
Tensor log_shares(const Tensor& x) {
  const int64_t B = x.dim(0), K = x.dim(1);
  const Tensor rows =
      gather(tensor_from<int32_t>({B * K}, [=](int64_t i) { return i / K; }), x);  // K times each
  return log_probability(rows, tensor_from<int32_t>({B * K}, [=](int64_t i) { return i % K; }))
      .view({B, K});
}

Tensor mean_of_squares(const Tensor& x) { return mean(multiply(x, x)); }

// Returns the column of the least or the greatest score of each row, `K` times.
template <class Better>
Tensor extremes(const Tensor& scores, const Better& better) {
  const int64_t B = scores.dim(0), K = scores.dim(1);
  const std::vector<float> all = to_floats(scores);
  std::vector<int32_t> columns;
  for (int64_t b = 0; b < B; ++b) {
    const auto row = all.begin() + b * K;
    const auto best = std::min_element(row, row + K, better) - row;
    columns.insert(columns.end(), static_cast<size_t>(K), static_cast<int32_t>(best));
  }
  return pick_columns(scores, columns);
}

// Pairs of candidates of LambdaLoss, as indices of scores, with the weights of their losses.
struct WeightedPairs {
  std::vector<int32_t> first, second;
  std::vector<float> weights;
};

double rank_discount(int64_t rank) {
  return math::log(1.0 + static_cast<double>(rank)) / math::log(2.0);
}

double gain_of(float label) { return math::exp(std::max(0.0, double{label}) * math::log(2.0)) - 1; }

// Adds the pairs of one query, whose candidates have the indices from `begin` on.
void add_pairs(const Labels& scores, const Labels& labels, int64_t begin, int64_t K,
               WeightedPairs& pairs) {
  constexpr double kMu = 10, kLeast = 1e-10;
  std::vector<int64_t> order(static_cast<size_t>(K));  // by descending scores
  std::iota(order.begin(), order.end(), begin);
  const auto label = [&](int64_t i) { return labels[static_cast<size_t>(i)]; };
  std::vector<int64_t> ideal = order;
  std::ranges::stable_sort(ideal, [&](int64_t a, int64_t b) { return label(a) > label(b); });
  double most = 0;  // the greatest possible DCG
  for (int64_t i = 0; i < K; ++i)
    most += gain_of(label(ideal[static_cast<size_t>(i)])) / rank_discount(i + 1);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  const auto inverse = [](int64_t rank) { return 1 / rank_discount(rank); };
  for (int64_t i = 1; i <= K; ++i)
    for (int64_t j = 1; j <= K; ++j) {
      const int64_t a = order[static_cast<size_t>(i - 1)], b = order[static_cast<size_t>(j - 1)];
      if (!(label(a) > label(b))) continue;
      const int64_t distance = std::abs(i - j);
      const double gains = (gain_of(label(a)) - gain_of(label(b))) / std::max(most, kLeast);
      const double weight =
          kMu * (inverse(distance) - inverse(distance + 1)) + std::abs(inverse(i) - inverse(j));
      pairs.first.push_back(static_cast<int32_t>(a));
      pairs.second.push_back(static_cast<int32_t>(b));
      pairs.weights.push_back(static_cast<float>(std::abs(gains) * weight));
    }
}

}  // namespace

Tensor pick_columns(const Tensor& x, const std::vector<int32_t>& columns) {
  const int64_t B = x.dim(0);
  return pick(x, tensor_of(columns, {B, std::ssize(columns) / B}));
}

Tensor margin_error(const Tensor& scores, const Labels& margins) {
  const int64_t B = scores.dim(0), N = scores.dim(1) - 1;
  check(N > 0 && std::ssize(margins) == B * N,
        "margin_error: {} margins for {}; expected one for each negative", margins.size(),
        scores.shape());
  std::vector<int32_t> negatives;
  for (int64_t i = 0; i < B * N; ++i) negatives.push_back(static_cast<int32_t>(1 + i % N));
  const std::vector<int32_t> positives(negatives.size());
  const Tensor found = subtract(pick_columns(scores, positives), pick_columns(scores, negatives));
  return mean_of_squares(subtract(found, constant_for(found, margins, "margin_error")));
}

Tensor list_divergence(const Tensor& scores, const Labels& teacher, float temperature) {
  const int64_t B = scores.dim(0), K = scores.dim(1);
  const Tensor log_p =
      log(softmax(scale(constant_for(scores, teacher, "list_divergence"), 1 / temperature)));
  // There are no other candidates.
  const Tensor others =
      full({B, 1, 1}, -std::numeric_limits<double>::infinity(), log_p.dtype(), log_p.device());
  const Tensor all = tensor_from<int32_t>({B, K}, [=](int64_t i) { return i % K; });
  return kl_divergence(scores, {all, concat_tokens(log_p.view({B, K, 1}), others).view({B, K + 1})},
                       static_cast<double>(B), temperature);
}

Tensor in_unit_interval(const Tensor& scores) {
  constexpr float kEpsilon = 1e-8f;
  const Tensor least = extremes(scores, std::less<float>()),
               greatest = extremes(scores, std::greater<float>());
  const Tensor range = shift(subtract(greatest, least), kEpsilon);
  return multiply(subtract(scores, least), exp(scale(log(range), -1)));
}

Tensor list_net_loss(const Tensor& scores, const Labels& labels) {
  const Tensor p = softmax(constant_for(scores, labels, "list_net_loss"));
  return scale(sum(multiply(p, log_shares(scores))), -1.0f / static_cast<float>(scores.dim(0)));
}

Tensor lambda_loss(const Tensor& scores, const Labels& labels) {
  constexpr float kBitsOfNat = 1.44269504f;  // log2(e)
  check(scores.rank() == 2 && scores.size() == std::ssize(labels),
        "lambda_loss: scores are {} with {} labels; expected as many", scores.shape(),
        labels.size());
  const int64_t K = scores.dim(1);
  const Labels numbers = to_floats(scores);
  WeightedPairs pairs;
  for (int64_t b = 0; b < scores.dim(0); ++b) add_pairs(numbers, labels, b * K, K, pairs);
  if (pairs.first.empty()) return scale(sum(scores), 0);
  const Tensor all = scores.view({scores.size(), 1});
  const Tensor differences =
      subtract(gather(vector_tensor(pairs.first), all), gather(vector_tensor(pairs.second), all));
  const Tensor weights = constant_for(differences, pairs.weights, "lambda_loss");
  return scale(mean(multiply(log_sigmoid(differences), weights)), -kBitsOfNat);
}

Tensor score_error(const Tensor& scores, const Labels& labels) {
  return mean_of_squares(subtract(scores, constant_for(scores, labels, "score_error")));
}

Tensor flops_of(const Tensor& x) {
  const int64_t texts = x.dim(0);
  const Tensor shares = full({1, texts}, 1.0 / static_cast<double>(texts), x.dtype(), x.device());
  // The mean of each column: [1, V]
  std::vector<int32_t> rows(static_cast<size_t>(texts));
  std::iota(rows.begin(), rows.end(), 0);
  const Tensor means = combine(x, tensor_of(rows, {1, texts}), shares);
  return sum(multiply(means, means));
}

Tensor absolute_sum_of(const Tensor& x) {
  return scale(sum(x), 1.0f / static_cast<float>(x.dim(0)));
}

Tensor late_interactions(const Tensor& queries, const std::vector<int64_t>& query_counts,
                         const Tensor& documents, const std::vector<int64_t>& document_counts,
                         bool mean) {
  const int64_t B = std::ssize(query_counts), rows = queries.dim(0);
  const Tensor largest = largest_products(queries, documents, document_counts);  // [D, rows]
  std::vector<float> belongs(static_cast<size_t>(B * rows));
  int64_t first = 0;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t count = query_counts[static_cast<size_t>(b)];
    std::fill_n(belongs.begin() + b * rows + first, count,
                mean ? 1.0f / static_cast<float>(count) : 1.0f);
    first += count;
  }
  return linear(tensor_of(belongs, {B, rows}, largest.dtype()).to(largest.device()), largest);
}

}  // namespace fovea::train
