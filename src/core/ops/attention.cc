// Attention and rotary positions.

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/math.h"
#include "ops/attention_terms.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {

Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, Pairing pairing) {
  check(x.rank() == 4, "rotate: x is {}; expected [B, T, H, D]", x.shape());
  const int64_t tokens = x.dim(1), rows = x.dim(0) * tokens;
  check(cosines.rank() == 2 && cosines.shape() == sines.shape() && cosines.dtype() == DType::f32 &&
            sines.dtype() == DType::f32,
        "rotate: cosines are {} {}, sines {} {}; expected fp32 [T, R/2] twice",
        name_of(cosines.dtype()), cosines.shape(), name_of(sines.dtype()), sines.shape());
  const int64_t angle_rows = cosines.dim(0), rotated = 2 * cosines.dim(1);
  check((angle_rows == tokens || angle_rows == rows) && rotated <= x.dim(3),
        "rotate: angles are {}, x is {}; expected [T or B*T, at most D/2]", cosines.shape(),
        x.shape());
  Rotation rotation{rows, angle_rows, x.dim(2), x.dim(3), rotated, pairing, false};
  Tensor y = empty_like(x);
  kernels(x).rotate(y, x, cosines, sines, rotation);
  if (!recording()) return y;
  rotation.inverse = true;
  return record(y, {x}, [=, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).rotate(d[x], dy, cosines, sines, rotation);  // rotated back
  });
}

namespace {

// Returns the number of bias tables.
int64_t check_bias(const Tensor& bias, const Tensor& q, int64_t distances) {
  if (!bias) return 1;
  const int64_t tables = bias.rank() == 3 ? bias.dim(0) : 1;
  const Shape table{q.dim(2), distances};
  check(bias.rank() >= 2 && Shape(bias.shape().end() - 2, bias.shape().end()) == table &&
            bias.size() == tables * elements(table) && tables > 0 && q.dim(0) % tables == 0 &&
            bias.dtype() == working_type(q),
        "attention: the bias is {} {}; expected {} {}, or one for each of equal parts of the batch",
        name_of(bias.dtype()), bias.shape(), name_of(working_type(q)), table);
  return tables;
}

void check_sinks(const Tensor& sinks, const Tensor& q, bool terms) {
  check(!sinks || (sinks.shape() == Shape{q.dim(-2)} && sinks.dtype() == working_type(q) && !terms),
        "attention: the sinks are {} {}, with terms {}; expected {} [{}] without terms",
        name_of(sinks.dtype()), sinks.shape(), terms, name_of(working_type(q)), q.dim(-2));
}

void check_documents(const DocumentStarts& documents, int64_t batch) {
  check(std::ssize(documents) == batch,
        "attention: the mask has documents for {} rows; expected {}", documents.size(), batch);
  for (const std::vector<int64_t>& starts : documents)
    check(!starts.empty() && starts[0] == 0 &&
              std::adjacent_find(starts.begin(), starts.end(), std::greater_equal<>()) ==
                  starts.end(),
          "attention: documents begin at {}; expected ascending positions from 0",
          fmt::join(starts, ", "));
}

AttentionShape shape_of(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  check(
      q.rank() == 4 && k.rank() == 4 && q.dim(0) == k.dim(0) && q.dim(3) == k.dim(3) &&
          k.dim(2) > 0 && q.dim(2) % k.dim(2) == 0,
      "attention: q is {}, k is {}; expected [B, T, H, D] and [B, S, G, D] with H a multiple of G",
      q.shape(), k.shape());
  const int64_t keys = options.keys < 0 ? k.dim(1) : options.keys;
  check(keys <= k.dim(1), "attention: {} keys; expected at most {}", keys, k.dim(1));
  check(options.mask.valid.empty() || static_cast<int64_t>(options.mask.valid.size()) == q.dim(0),
        "attention: the mask has {} rows; expected {}", options.mask.valid.size(), q.dim(0));
  check_probability(options.dropout, "attention");
  const Mask& mask = options.mask;
  check(mask.first_query >= 0 && mask.window >= 0 && mask.global >= 0 && mask.prefix >= 0,
        "attention: first_query {}, window {}, global {}, prefix {}; expected none below 0",
        mask.first_query, mask.window, mask.global, mask.prefix);
  if (mask.documents != nullptr) check_documents(*mask.documents, q.dim(0));
  check(options.softcap >= 0, "attention: softcap {}; expected 0 (none) or more", options.softcap);
  const int64_t tables = check_bias(options.bias, q, q.dim(1) + keys - 1);
  check_sinks(options.sinks, q, static_cast<bool>(options.terms));
  return {.batch = q.dim(0),
          .queries = q.dim(1),
          .keys = keys,
          .capacity = k.dim(1),
          .heads = q.dim(2),
          .kv_heads = k.dim(2),
          .width = q.dim(3),
          .scale = options.scale,
          .mask = options.mask,
          .dropout = options.dropout,
          .softcap = options.softcap,
          .bias = options.bias ? In(options.bias) : In{},
          .bias_stride = q.dim(1) + keys - 1,
          .bias_origin = q.dim(1) - 1,
          .bias_tables = tables,
          .sinks = options.sinks ? In(options.sinks) : In{}};
}

// The same options without a gradient of the terms.
AttentionOptions constant_terms(AttentionOptions options) {
  options.terms = options.terms.detach();
  return options;
}

// Converts the products q k^T of a head, [T, S], to scores. `bias`: the head's table, or null.
template <class Real>
void finish_scores(Real* scores, int64_t batch, const AttentionShape& shape, const Real* bias) {
  const double cap = shape.softcap;
  const int64_t T = shape.queries, S = shape.keys;
  for (int64_t t = 0; t < T; ++t) {
    Real* const row = scores + t * S;
    Interval seen[Mask::kMostIntervals];
    const int count = shape.mask.intervals(batch, t, S, seen);
    const auto hide = [&](int64_t begin, int64_t end) {
      std::fill(row + begin, row + end, -std::numeric_limits<Real>::infinity());
    };
    hide(0, count > 0 ? seen[0].begin : S);
    for (int i = 0; i < count; ++i) {
      for (int64_t s = seen[i].begin; s < seen[i].end; ++s) {
        double score = double{shape.scale} * double{row[s]};
        if (cap > 0) score = cap * math::tanh(score / cap);
        if (bias != nullptr) score += double{bias[s - t + shape.bias_origin]};
        row[s] = static_cast<Real>(score);
      }
      hide(seen[i].end, i + 1 < count ? seen[i + 1].begin : S);
    }
  }
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options) {
  AttentionShape s = shape_of(q, k, options);
  check(v.rank() == 4 && std::equal(k.shape().begin(), k.shape().end() - 1, v.shape().begin()),
        "attention: k is {}, v is {}; expected shapes that differ only in the last axis", k.shape(),
        v.shape());
  if (options.terms) return attention_with_terms(q, k, v, options);
  s.value_width = v.dim(3);
  Tensor y = empty({s.batch, s.queries, s.heads, s.value_width}, q.dtype(), q.device());
  if (!recording()) {
    kernels(q).attention(y, {}, q, k, v, s);
    return y;
  }
  // The log of each softmax's sum, from which the backward pass recomputes the weights tile by
  // tile.
  Tensor lse = empty({s.batch, s.heads, s.queries}, working_type(q), q.device());
  kernels(q).attention(y, lse, q, k, v, s);
  const Tensor kept = y;
  const Tensor bias = options.bias, sinks = options.sinks;
  std::vector<Tensor> inputs = {q, k, v};
  if (bias) inputs.push_back(bias);
  if (sinks) inputs.push_back(sinks);
  return record(y, inputs, [=, units = row_units()](const Tensor& dy, Gradients& d) {
    // with P = softmax, delta = rowsum(dy * y):  dv = P^T dy,  dS = P * (dy v^T - delta), dq =
    // scale * dS k,  dk = scale * dS^T q   (Dao et al. 2022, appendix B). The gradients of the bias
    // are sums of dS along diagonals.
    kernels(q).attention_backward(d[q], d[k], d[v], bias ? d[bias] : Out{}, dy, q, k, v, kept, lse,
                                  s);
    if (!sinks || !d.wants(sinks)) return;
    const Tensor terms = empty({s.batch * s.queries, s.heads}, working_type(q), q.device());
    kernels(q).attention_sink_terms(terms, dy, kept, lse, s);
    kernels(q).sum_rows(d[sinks], terms, {terms.dim(0), s.heads, units.of(terms.dim(0))});
  });
}

Tensor attention_paged(const Tensor& q, const std::vector<PagedText>& spans,
                       const PagedOptions& options) {
  check(q.rank() >= 2 && options.kv_heads > 0 && q.dim(-2) % options.kv_heads == 0,
        "attention: q is {} with {} key-value heads; expected [..., H, D] with H a "
        "multiple of their number",
        q.shape(), options.kv_heads);
  const int64_t rows = q.size() / (q.dim(-2) * q.dim(-1));
  for (const PagedText& span : spans) {
    check(span.row >= 0 && span.row + span.queries <= rows,
          "attention: a text has rows {} to {}; expected a range within 0 to {}", span.row,
          span.row + span.queries, rows);
  }
  check(!options.bias || options.bias.dtype() == working_type(q),
        "attention: the bias is {}; expected {}", name_of(options.bias.dtype()),
        name_of(working_type(q)));
  check_sinks(options.sinks, q, false);
  const int64_t value_width = options.value_width > 0 ? options.value_width : q.dim(-1);
  check(!options.values_in_keys || value_width <= q.dim(-1),
        "attention: values are {} wide; expected at most {}, the width of the keys", value_width,
        q.dim(-1));
  Shape shape = q.shape();
  shape.back() = value_width;
  Tensor y = empty(shape, q.dtype(), q.device());
  kernels(q).attention_paged(y, q,
                             {.heads = q.dim(-2),
                              .kv_heads = options.kv_heads,
                              .width = q.dim(-1),
                              .value_width = value_width,
                              .values_in_keys = options.values_in_keys,
                              .pages = options.pages,
                              .scale = options.scale,
                              .softcap = options.softcap,
                              .bias = options.bias ? In(options.bias) : In{},
                              .bias_stride = options.bias ? options.bias.dim(-1) : 0,
                              .bias_zero = options.bias_zero,
                              .sinks = options.sinks ? In(options.sinks) : In{}},
                             spans);
  return y;
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  const AttentionShape s = shape_of(q, k, options);
  if (options.terms) return weights_with_terms(q.detach(), k.detach(), constant_terms(options));
  Tensor weights = empty({s.batch, s.heads, s.queries, s.keys}, working_type(q), q.device());
  kernels(q).attention_weights(weights, q, k, s);
  return weights;
}

Tensor attention_scores(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  const AttentionShape s = shape_of(q, k, options);
  if (options.terms)
    return scores_with_terms(q.detach(), k.detach(), constant_terms(options),
                             -std::numeric_limits<double>::infinity());
  const int64_t T = s.queries, S = s.keys, H = s.heads, G = s.kv_heads, D = s.width;
  const Kernels& kernel = kernels(q);
  const Tensor scores = empty({s.batch, H, T, S}, working_type(q), q.device());
  const Tensor queries = empty({T, D}, q.dtype(), q.device());
  const Tensor keys = empty({S, D}, k.dtype(), k.device());
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      const int64_t offset = (b * H + h) * T * S;
      const int64_t table = (b / (s.batch / s.bias_tables) * H + h) * s.bias_stride;
      kernel.copy_columns(queries, at(In(q), b * T * H * D), {T, D, H * D, h * D, D, 0});
      kernel.copy_columns(keys, at(In(k), b * s.capacity * G * D),
                          {S, D, G * D, h / (H / G) * D, D, 0});
      kernel.gemm(at(Out(scores), offset), queries, keys, {}, {T, S, D, false, true});
      const auto finish = [&](auto* all) {
        const auto* bias = static_cast<decltype(all)>(options.bias.data());
        finish_scores(all + offset, b, s, bias == nullptr ? bias : bias + table);
      };
      if (scores.dtype() == DType::f64)
        finish(scores.data_as<double>());
      else
        finish(scores.data_as<float>());
    }
  }
  return scores;
}

namespace {

struct Sizes {
  int64_t B, H, T, S, G, D;

  int64_t weights(int64_t b, int64_t h) const { return (b * H + h) * T * S; }
  // The columns of one head of x [rows, heads D] <-> [rows, D].
  static ColumnCopy out_of(int64_t rows, int64_t heads, int64_t head, int64_t D) {
    return {rows, D, heads * D, head * D, D, 0};
  }
  static ColumnCopy into(int64_t rows, int64_t heads, int64_t head, int64_t D) {
    return {rows, D, D, 0, heads * D, head * D};
  }
};

}  // namespace

Tensor weighted_values(const Tensor& given, const Tensor& v) {
  check(given.rank() == 4 && v.rank() == 4 && given.dim(0) == v.dim(0) &&
            given.dim(3) == v.dim(1) && v.dim(2) > 0 && given.dim(1) % v.dim(2) == 0,
        "weighted_values: weights are {}, v is {}; expected [B, H, T, S] and [B, S, G, D] with H a "
        "multiple of G",
        given.shape(), v.shape());
  const Tensor weights = cast(given, v.dtype());
  const Sizes n{v.dim(0), given.dim(1), given.dim(2), v.dim(1), v.dim(2), v.dim(3)};
  const Tensor y = empty({n.B, n.T, n.H, n.D}, v.dtype(), v.device());
  const auto values_of = [n, v](int64_t b, int64_t h) {  // [S, D]
    const Tensor head = empty({n.S, n.D}, v.dtype(), v.device());
    kernels(v).copy_columns(head, at(In(v), b * n.S * n.G * n.D),
                            Sizes::out_of(n.S, n.G, h / (n.H / n.G), n.D));
    return head;
  };
  const Tensor product = empty({n.T, n.D}, v.dtype(), v.device());
  for (int64_t b = 0; b < n.B; ++b) {
    for (int64_t h = 0; h < n.H; ++h) {
      kernels(v).gemm(product, at(In(weights), n.weights(b, h)), values_of(b, h), {},
                      {n.T, n.D, n.S});
      kernels(v).copy_columns(at(Out(y), b * n.T * n.H * n.D), product,
                              Sizes::into(n.T, n.H, h, n.D));
    }
  }
  return record(y, {weights, v}, [=](const Tensor& dy, Gradients& d) {
    // dP = dy v^T and dv = P^T dy for each head; heads of a group share dv.
    const Kernels& k = kernels(dy);
    const Out dweights = d[weights], dv = d[v];
    const Tensor dvalues = zeros(v.shape(), v.dtype(), v.device());
    const Tensor dhead = empty({n.T, n.D}, dy.dtype(), dy.device());
    const Tensor part = empty({n.S, n.D}, v.dtype(), v.device());
    for (int64_t b = 0; b < n.B; ++b) {
      for (int64_t h = 0; h < n.H; ++h) {
        k.copy_columns(dhead, at(In(dy), b * n.T * n.H * n.D), Sizes::out_of(n.T, n.H, h, n.D));
        if (d.wants(weights))
          k.gemm(at(dweights, n.weights(b, h)), dhead, values_of(b, h), {},
                 {n.T, n.S, n.D, false, true});
        k.gemm(part, at(In(weights), n.weights(b, h)), dhead, {}, {n.S, n.D, n.T, true, false});
        Out sum = at(Out(dvalues), b * n.S * n.G * n.D);
        sum.add = true;
        k.copy_columns(sum, part, Sizes::into(n.S, n.G, h / (n.H / n.G), n.D));
      }
    }
    if (d.wants(v)) k.copy_columns(dv, dvalues, {n.B * n.S, n.G * n.D, n.G * n.D, 0, n.G * n.D, 0});
  });
}

}  // namespace fovea
