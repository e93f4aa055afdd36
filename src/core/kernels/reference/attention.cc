#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "fovea/core/random.h"
#include "kernels/layout/kv_page.h"
#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void rotate(Out y, In x, In cosines, In sines, const Rotation& r) {
  const int64_t half = r.rotated / 2;
  const bool halves = r.pairing == Pairing::halves;
  for (int64_t i = 0; i < r.rows * r.heads; ++i) {
    const int64_t head = i * r.width, angles = i / r.heads % r.angle_rows * half;
    for (int64_t pair = 0; pair < half; ++pair) {
      const int64_t first = head + (halves ? pair : 2 * pair);
      const int64_t second = first + (halves ? half : 1);
      const double a = get(x, first), b = get(x, second), cosine = get(cosines, angles + pair);
      const double sine = r.inverse ? -get(sines, angles + pair) : get(sines, angles + pair);
      put(y, first, a * cosine - b * sine);
      put(y, second, b * cosine + a * sine);
    }
    for (int64_t j = head + r.rotated; j < head + r.width; ++j) put(y, j, get(x, j));
  }
}

// softmax(scale * q k^T) v and its gradient (Vaswani et al. 2017), one row of weights at a time.
namespace {

struct Query {
  int64_t batch, head, position;
};

// The number of the vector of a query in q and y, and of a key that it sees in k and v.
int64_t query_number(const AttentionShape& shape, const Query& query) {
  return (query.batch * shape.queries + query.position) * shape.heads + query.head;
}

int64_t key_number(const AttentionShape& shape, const Query& query, int64_t key) {
  const int64_t kv_head = query.head / (shape.heads / shape.kv_heads);
  return (query.batch * shape.capacity + key) * shape.kv_heads + kv_head;
}

// Returns the index at which the vector of a query in q, or of a key in k, begins.
int64_t query_at(const AttentionShape& shape, const Query& query) {
  return query_number(shape, query) * shape.width;
}

int64_t key_at(const AttentionShape& shape, const Query& query, int64_t key) {
  return key_number(shape, query, key) * shape.width;
}

// Returns the index at which the vector of a result in y, or of a value in v, begins.
int64_t result_at(const AttentionShape& shape, const Query& query) {
  return query_number(shape, query) * shape.values();
}

int64_t value_at(const AttentionShape& shape, const Query& query, int64_t key) {
  return key_number(shape, query, key) * shape.values();
}

int64_t row_of(const AttentionShape& shape, const Query& query) {
  return (query.batch * shape.heads + query.head) * shape.queries + query.position;
}

double dot(const In& a, int64_t a_begin, const In& b, int64_t b_begin, int64_t width) {
  double sum = 0;
  for (int64_t d = 0; d < width; ++d) sum += get(a, a_begin + d) * get(b, b_begin + d);
  return sum;
}

template <class Body>
void for_each_query(const AttentionShape& shape, Body body) {
  for (int64_t batch = 0; batch < shape.batch; ++batch)
    for (int64_t head = 0; head < shape.heads; ++head)
      for (int64_t position = 0; position < shape.queries; ++position)
        body({batch, head, position});
}

template <class Body>
void for_each_key(const AttentionShape& shape, const Query& query, Body body) {
  Interval seen[Mask::kMostIntervals];
  const int count = shape.mask.intervals(query.batch, query.position, shape.keys, seen);
  for (int i = 0; i < count; ++i)
    for (int64_t key = seen[i].begin; key < seen[i].end; ++key) body(key);
}

int64_t bias_at(const AttentionShape& shape, const Query& query, int64_t key) {
  return shape.bias_row(query.batch, query.head) * shape.bias_stride + key - query.position +
         shape.bias_origin;
}

// Returns tanh(score / softcap), before the bias.
double capped(const AttentionShape& shape, const Query& query, int64_t key, const In& q,
              const In& k) {
  const double score =
      shape.scale * dot(q, query_at(shape, query), k, key_at(shape, query, key), shape.width);
  return std::tanh(score / shape.softcap);
}

double score_of(const AttentionShape& shape, const Query& query, int64_t key, const In& q,
                const In& k) {
  const double bias = shape.bias.data == nullptr ? 0 : get(shape.bias, bias_at(shape, query, key));
  if (shape.softcap > 0) return shape.softcap * capped(shape, query, key, q, k) + bias;
  return shape.scale * dot(q, query_at(shape, query), k, key_at(shape, query, key), shape.width) +
         bias;
}

// Returns the score of the query's sink; -inf without one.
double sink_of(const AttentionShape& shape, const Query& query) {
  return shape.sinks.data == nullptr ? -std::numeric_limits<double>::infinity()
                                     : get(shape.sinks, query.head);
}

// Returns the log of the softmax's sum; -inf if the query sees neither a key nor a sink.
double log_sum(const AttentionShape& shape, const Query& query, const In& q, const In& k) {
  const auto score = [&](int64_t key) { return score_of(shape, query, key, q, k); };
  const double sink = sink_of(shape, query);
  double largest = sink, sum = 0;
  for_each_key(shape, query, [&](int64_t key) { largest = std::max(largest, score(key)); });
  for_each_key(shape, query, [&](int64_t key) { sum += std::exp(score(key) - largest); });
  if (shape.sinks.data != nullptr) sum += std::exp(sink - largest);
  return sum > 0 ? largest + std::log(sum) : -std::numeric_limits<double>::infinity();
}

double weight(const AttentionShape& shape, const Query& query, int64_t key, const In& q,
              const In& k, double log_sum) {
  return std::exp(score_of(shape, query, key, q, k) - log_sum);
}

// Returns the factor by which dropout multiplies a weight.
double kept(const AttentionShape& shape, const Query& query, int64_t key) {
  const Dropout& dropout = shape.dropout;
  if (dropout.probability == 0) return 1;
  const auto row = static_cast<uint64_t>(shape.first_dropped_row() * shape.heads * shape.queries +
                                         row_of(shape, query));
  const uint64_t element =
      row * static_cast<uint64_t>((shape.keys + 3) / 4 * 4) + static_cast<uint64_t>(key);
  const auto words =
      philox(dropout.seed, Stream::dropout, dropout.substream, (dropout.step << 32) + element / 4);
  return uniform(words[element % 4]) < dropout.probability ? 0 : 1.0 / (1.0 - dropout.probability);
}

double rounded_to_bf16(double x) { return widen(narrow(static_cast<float>(x))); }

}  // namespace

// Attention whose weights, before their division by their sum, are rounded to bf16.
void attention_with_rounded_weights(Out y, In q, In k, In v, const AttentionShape& shape) {
  std::vector<double> sums(static_cast<size_t>(shape.values()));
  for_each_query(shape, [&](const Query& query) {
    // Any power of two as the unit of the weights gives the same rounding.
    const double unit = std::nearbyint(log_sum(shape, query, q, k) * std::numbers::log2e);
    std::fill(sums.begin(), sums.end(), 0.0);
    double total = 0;
    if (shape.sinks.data != nullptr)
      total = std::exp2(sink_of(shape, query) * std::numbers::log2e - unit);
    for_each_key(shape, query, [&](int64_t key) {
      const double score = score_of(shape, query, key, q, k) * std::numbers::log2e;
      const double w = rounded_to_bf16(std::exp2(score - unit));
      total += w;
      for (size_t d = 0; d < sums.size(); ++d)
        sums[d] += w * get(v, value_at(shape, query, key) + static_cast<int64_t>(d));
    });
    for (size_t d = 0; d < sums.size(); ++d)
      put(y, result_at(shape, query) + static_cast<int64_t>(d), total > 0 ? sums[d] / total : 0);
  });
}

void attention(Out y, Out lse, In q, In k, In v, const AttentionShape& shape) {
  std::vector<double> sum(static_cast<size_t>(shape.values()));
  for_each_query(shape, [&](const Query& query) {
    const double log_of_sum = log_sum(shape, query, q, k);
    std::fill(sum.begin(), sum.end(), 0.0);
    for_each_key(shape, query, [&](int64_t key) {
      const double w = weight(shape, query, key, q, k, log_of_sum) * kept(shape, query, key);
      for (size_t d = 0; d < sum.size(); ++d)
        sum[d] += w * get(v, value_at(shape, query, key) + static_cast<int64_t>(d));
    });
    for (size_t d = 0; d < sum.size(); ++d)
      put(y, result_at(shape, query) + static_cast<int64_t>(d), sum[d]);
    put(lse, row_of(shape, query), log_of_sum);
  });
}

// Returns the keys or values of one sequence, copied from its pages; zeros for null pages.
std::vector<double> gathered(const void* const* pages, PagePart part, const PageLayout& layout,
                             int64_t keys) {
  std::vector<double> rows(static_cast<size_t>(keys * layout.heads * layout.width));
  for (int64_t key = 0; key < keys; ++key)
    for (int64_t head = 0; head < layout.heads && pages[key / kPageTokens] != nullptr; ++head)
      get_from_page(layout, part, pages[key / kPageTokens], key % kPageTokens, head,
                    rows.data() + (key * layout.heads + head) * layout.width);
  return rows;
}

// Returns the values of one sequence: copied from their pages, or the first elements of its keys.
std::vector<double> values_of(const PagedAttention& paged, const PagedText& span,
                              const std::vector<double>& keys) {
  const PageLayout layout = value_pages(paged);
  if (!paged.values_in_keys) return gathered(span.value_pages, PagePart::values, layout, span.keys);
  std::vector<double> values;
  for (int64_t key = 0; key < span.keys * paged.kv_heads; ++key) {
    const auto begin = keys.begin() + key * paged.width;
    values.insert(values.end(), begin, begin + layout.width);
  }
  return values;
}

void attention_paged(Out y, In q, const PagedAttention& paged,
                     const std::vector<PagedText>& spans) {
  for (const PagedText& span : spans) {
    const AttentionShape shape = shape_of(paged, span);
    const int64_t row = paged.heads * shape.width, result_row = paged.heads * shape.values();
    const auto keys = gathered(span.key_pages, PagePart::keys, key_pages(paged), span.keys);
    const auto values = values_of(paged, span, keys);
    std::vector<double> queries, results(static_cast<size_t>(span.queries * result_row));
    const bool rounds = paged.pages == DType::bf16;
    for (int64_t i = 0; i < span.queries * row; ++i) {
      const double number = get(q, span.row * row + i);
      queries.push_back(rounds ? rounded_to_bf16(number) : number);
    }
    const Out y_of_span{results.data(), DType::f64};
    const In q_of_span{queries.data(), DType::f64}, k{keys.data(), DType::f64},
        v{values.data(), DType::f64};
    if (rounds)
      attention_with_rounded_weights(y_of_span, q_of_span, k, v, shape);
    else
      attention(y_of_span, {}, q_of_span, k, v, shape);
    for (int64_t i = 0; i < span.queries * result_row; ++i)
      put(y, span.row * result_row + i, results[static_cast<size_t>(i)]);
  }
}

void attention_backward(Out dq, Out dk, Out dv, Out dbias, In dy, In q, In k, In v, In y, In lse,
                        const AttentionShape& shape) {
  const auto keys = static_cast<size_t>(shape.batch * shape.capacity * shape.kv_heads);
  const auto width = static_cast<size_t>(shape.width);
  const auto value_width = static_cast<size_t>(shape.values());
  std::vector<double> sum_k(keys * width), sum_v(keys * value_width), sum_q(width);
  std::vector<double> sum_bias(
      dbias.data == nullptr
          ? 0
          : static_cast<size_t>(shape.bias_tables * shape.heads * shape.bias_stride));
  for_each_query(shape, [&](const Query& query) {
    const int64_t at = query_at(shape, query), of_y = result_at(shape, query);
    const double delta = dot(dy, of_y, y, of_y, shape.values());  // = sum over keys of w * dw
    std::fill(sum_q.begin(), sum_q.end(), 0.0);
    for_each_key(shape, query, [&](int64_t key) {
      const int64_t key_begin = key_at(shape, query, key);
      const double w = weight(shape, query, key, q, k, get(lse, row_of(shape, query)));
      const double keep = kept(shape, query, key);
      const int64_t value_begin = value_at(shape, query, key);
      const double dw = keep * dot(dy, of_y, v, value_begin, shape.values());
      if (dbias.data != nullptr)
        sum_bias[static_cast<size_t>(bias_at(shape, query, key))] += w * (dw - delta);
      const double bent = shape.softcap > 0 ? capped(shape, query, key, q, k) : 0;
      const double dscore = shape.scale * w * (dw - delta) * (1 - bent * bent);
      for (size_t d = 0; d < width; ++d) {
        const int64_t i = static_cast<int64_t>(d);
        sum_q[d] += dscore * get(k, key_begin + i);
        sum_k[static_cast<size_t>(key_begin) + d] += dscore * get(q, at + i);
      }
      for (size_t d = 0; d < value_width; ++d)
        sum_v[static_cast<size_t>(value_begin) + d] +=
            w * keep * get(dy, of_y + static_cast<int64_t>(d));
    });
    for (size_t d = 0; d < width; ++d) put(dq, at + static_cast<int64_t>(d), sum_q[d]);
  });
  for (size_t i = 0; i < sum_bias.size(); ++i) put(dbias, static_cast<int64_t>(i), sum_bias[i]);
  for (size_t i = 0; i < sum_k.size(); ++i) put(dk, static_cast<int64_t>(i), sum_k[i]);
  for (size_t i = 0; i < sum_v.size(); ++i) put(dv, static_cast<int64_t>(i), sum_v[i]);
}

void attention_sink_terms(Out terms, In dy, In y, In lse, const AttentionShape& shape) {
  for_each_query(shape, [&](const Query& query) {
    const int64_t at = result_at(shape, query);
    const double share = std::exp(sink_of(shape, query) - get(lse, row_of(shape, query)));
    put(terms, query_number(shape, query), -share * dot(dy, at, y, at, shape.values()));
  });
}

void attention_weights(Out w, In q, In k, const AttentionShape& shape) {
  for_each_query(shape, [&](const Query& query) {
    const int64_t row = row_of(shape, query) * shape.keys;
    std::vector<double> weights(static_cast<size_t>(shape.keys));
    const double log_of_sum = log_sum(shape, query, q, k);
    for_each_key(shape, query, [&](int64_t key) {
      weights[static_cast<size_t>(key)] = weight(shape, query, key, q, k, log_of_sum);
    });
    for (int64_t key = 0; key < shape.keys; ++key)
      put(w, row + key, weights[static_cast<size_t>(key)]);
  });
}

}  // namespace fovea::reference
