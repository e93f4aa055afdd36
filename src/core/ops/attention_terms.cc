#include "ops/attention_terms.h"

#include <algorithm>

#include "base/error.h"
#include "ops/common.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// The sizes of head_products(), and the columns of one head of x [rows, heads D].
struct HeadProducts {
  int64_t B, T, H, N, S, G, D;

  int64_t part(int64_t b) const { return b * N / B; }
  int64_t group(int64_t h) const { return h / (H / G); }
  Tensor query(const Tensor& q, int64_t b, int64_t h) const {  // [T, D]
    return head_of(q, b * T, T, H, h);
  }
  Tensor key(const Tensor& k, int64_t b, int64_t h) const {  // [S, D]
    return head_of(k, part(b) * S, S, G, group(h));
  }
  Tensor head_of(const Tensor& x, int64_t row, int64_t rows, int64_t heads, int64_t head) const {
    const Tensor y = empty({rows, D}, x.dtype(), x.device());
    kernels(x).copy_columns(y, at(In(x), row * heads * D), {rows, D, heads * D, head * D, D, 0});
    return y;
  }
  // Writes or adds the rows of a head to y.
  void put(Out y, const Tensor& x, int64_t row, int64_t rows, int64_t heads, int64_t head) const {
    kernels(x).copy_columns(at(y, row * heads * D), x, {rows, D, D, 0, heads * D, head * D});
  }
};

// Calls f(row, interval) for each row of scores [B, H, T, S] and each interval of keys that it
// sees. Returns whether each row sees a key.
template <class F>
bool each_seen(const Mask& mask, const Shape& shape, F f) {
  bool all = true;
  for (int64_t row = 0; row < shape[0] * shape[1] * shape[2]; ++row) {
    Interval seen[Mask::kMostIntervals];
    const int64_t batch = row / (shape[1] * shape[2]);
    const int count = mask.intervals(batch, row % shape[2], shape[3], seen);
    for (int i = 0; i < count; ++i) f(row, seen[i]);
    all = all && count > 0;
  }
  return all;
}

// `shown` for the keys that queries see, `hidden` for the others.   -> [B, H, T, S]
Tensor mask_values(const Mask& mask, const Shape& shape, double shown, double hidden, DType dtype) {
  Tensor values = full(shape, hidden, dtype);
  const auto show = [&](auto* to, auto value) {
    each_seen(mask, shape, [&](int64_t row, const Interval& seen) {
      std::fill(to + row * shape[3] + seen.begin, to + row * shape[3] + seen.end, value);
    });
  };
  if (dtype == DType::f64)
    show(values.data_as<double>(), shown);
  else
    show(values.data_as<float>(), static_cast<float>(shown));
  return values;
}

}  // namespace

Tensor head_products(const Tensor& q, const Tensor& given) {
  check(q.rank() == 4 && given.rank() == 4 && q.dim(3) == given.dim(3) && given.dim(0) > 0 &&
            given.dim(2) > 0 && q.dim(0) % given.dim(0) == 0 && q.dim(2) % given.dim(2) == 0,
        "head_products: q is {}, k is {}; expected [B, T, H, D] and [N, S, G, D] with B a multiple "
        "of N and H of G",
        q.shape(), given.shape());
  const Tensor k = cast(given, q.dtype());
  const HeadProducts n{q.dim(0), q.dim(1), q.dim(2), k.dim(0), k.dim(1), k.dim(2), q.dim(3)};
  const Tensor y = empty({n.B, n.H, n.T, n.S}, working_type(q), q.device());
  for (int64_t b = 0; b < n.B; ++b)
    for (int64_t h = 0; h < n.H; ++h)
      kernels(q).gemm(at(Out(y), (b * n.H + h) * n.T * n.S), n.query(q, b, h), n.key(k, b, h), {},
                      {n.T, n.S, n.D, false, true});
  return record(y, {q, k}, [=](const Tensor& given_dy, Gradients& d) {
    // dq = dy k and dk = dy^T q for each head; the heads of a group and the rows of a part share
    // dk.
    const Tensor dy = in_dtype(given_dy, q.dtype());
    const Kernels& kernel = kernels(dy);
    const Out dq = d[q], dk = d[k];
    const Tensor dkeys = zeros(k.shape(), working_type(k), k.device());
    const Tensor of_query = empty({n.T, n.D}, q.dtype(), q.device());
    const Tensor of_key = empty({n.S, n.D}, dkeys.dtype(), k.device());
    for (int64_t b = 0; b < n.B; ++b) {
      for (int64_t h = 0; h < n.H; ++h) {
        const In products = at(In(dy), (b * n.H + h) * n.T * n.S);
        if (d.wants(q)) {
          kernel.gemm(of_query, products, n.key(k, b, h), {}, {n.T, n.D, n.S});
          n.put(dq, of_query, b * n.T, n.T, n.H, h);
        }
        if (!d.wants(k)) continue;
        kernel.gemm(of_key, products, n.query(q, b, h), {}, {n.S, n.D, n.T, true, false});
        Out sum = dkeys;
        sum.add = true;
        n.put(sum, of_key, n.part(b) * n.S, n.S, n.G, n.group(h));
      }
    }
    if (d.wants(k)) kernel.convert(dk, dkeys, dkeys.size());
  });
}

Tensor distance_terms(const Tensor& given_queries, const Tensor& given_keys, const Tensor& rows,
                      float scale) {
  const Tensor& one = given_queries ? given_queries : given_keys;
  check(one && one.rank() == 4 && rows.rank() == 1 && rows.dtype() == DType::i32,
        "distance_terms: rows are {} {}; expected terms [B, H, T, R] and int32 [T + S - 1]",
        name_of(rows.dtype()), rows.shape());
  const int64_t T = given_queries ? given_queries.dim(2) : rows.size() + 1 - given_keys.dim(2);
  const int64_t S = rows.size() + 1 - T, R = one.dim(3);
  const Shape shape{one.dim(0), one.dim(1), T, S};
  check(T > 0 && S > 0 && (!given_keys || given_keys.shape() == Shape{shape[0], shape[1], S, R}),
        "distance_terms: of_queries is {}, of_keys is {}, for {} rows; expected [B, H, T, R] and "
        "[B, H, S, R] for T + S - 1",
        given_queries.shape(), given_keys.shape(), rows.size());
  for (const int32_t row : HostValues<int32_t>(rows))
    check(row >= 0 && row < R, "distance_terms: row {}; expected 0 to {}", row, R - 1);
  const DType dtype = working_type(one);
  const auto in_working_type = [&](const Tensor& x) { return x ? cast(x, dtype) : x; };
  const Tensor of_queries = in_working_type(given_queries), of_keys = in_working_type(given_keys);
  const Tensor there = rows.to(one.device());
  const DistanceTerms terms{shape[0] * shape[1], T, S, R, scale};
  const Tensor y = empty(shape, dtype, one.device());
  const auto in = [](const Tensor& x) { return x ? In(x) : In{}; };
  kernels(y).distance_terms(y, in(of_queries), in(of_keys), there, terms);
  std::vector<Tensor> inputs;
  for (const Tensor& x : {of_queries, of_keys})
    if (x) inputs.push_back(x);
  const auto slot = [](const Tensor& x) { return x ? Saved::slot(x) : Saved::slot(Tensor()); };
  return record(y, inputs,
                [=, q = slot(of_queries), k = slot(of_keys), has_q = bool(of_queries),
                 has_k = bool(of_keys)](const Tensor& dy, Gradients& d) {
                  const Out dq = has_q ? d[q] : Out{}, dk = has_k ? d[k] : Out{};
                  kernels(dy).distance_terms_backward(dq, dk, dy, there, terms);
                });
}

Tensor scores_with_terms(const Tensor& q, const Tensor& k, const AttentionOptions& options,
                         double hidden) {
  Tensor scores = scale(head_products(q, k), options.scale);
  if (options.softcap > 0) scores = softcap(scores, options.softcap);
  check(options.terms.shape() == scores.shape() && !options.bias,
        "attention: the terms are {}; expected {} and no bias", options.terms.shape(),
        scores.shape());
  const Tensor mask = mask_values(options.mask, scores.shape(), 0, hidden, scores.dtype());
  return add(add(scores, options.terms), mask.to(q.device()));
}

Tensor weights_with_terms(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  constexpr double kHidden = -1e30;  // its weight is 0, but a row of it has no NaN
  const Tensor weights = softmax(scores_with_terms(q, k, options, kHidden));
  const Shape& shape = weights.shape();
  if (each_seen(options.mask, shape, [](int64_t, const Interval&) {})) return weights;
  return multiply(weights,  // 0 for queries that see no key
                  mask_values(options.mask, shape, 1, 0, weights.dtype()).to(weights.device()));
}

Tensor attention_with_terms(const Tensor& q, const Tensor& k, const Tensor& v,
                            const AttentionOptions& options) {
  const Tensor weights = dropout(weights_with_terms(q, k, options), options.dropout);
  return cast(weighted_values(weights, cast(v, weights.dtype())), v.dtype());
}

}  // namespace fovea
