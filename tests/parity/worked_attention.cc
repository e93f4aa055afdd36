// Attention, softmax, masks and pooling of the worked examples.

#include <cmath>

#include "fovea/core/random.h"
#include "generate/sampler.h"
#include "nn/head.h"
#include "nn/positions.h"
#include "tensor/tape.h"
#include "worked_examples.h"

namespace fovea::worked {
namespace {

// The results of one head: weights [T, S] and output [T, D].
struct Head {
  Tensor weights, output;
};

// Pads rows with zeros, which changes no product: attention requires queries, keys and values of
// equal width.
Tensor padded(const Tensor& x, int64_t width) {
  const auto values = to_doubles(x);
  std::vector<double> wide(static_cast<size_t>(x.dim(0) * width));
  for (int64_t r = 0; r < x.dim(0); ++r)
    for (int64_t c = 0; c < x.dim(1); ++c)
      wide[static_cast<size_t>(r * width + c)] = values[static_cast<size_t>(r * x.dim(1) + c)];
  return tensor_of(wide, {x.dim(0), width}, x.dtype());
}

Tensor columns(const Tensor& x, int64_t count) {
  const Tensor turned = transposed(x);
  return transposed(turned.rows(0, count));
}

Head attend(const Tensor& q, const Tensor& k, const Tensor& v, AttentionOptions options) {
  const int64_t T = q.dim(0), S = k.dim(0), width = std::max(q.dim(1), v.dim(1));
  const auto heads = [&](const Tensor& x) {
    return padded(x, width).view({1, x.dim(0), 1, width});
  };
  const Tensor a = heads(q), b = heads(k), c = heads(v);
  return {attention_weights(a, b, options).view({T, S}),
          columns(attention(a, b, c, options).view({T, width}), v.dim(1))};
}

AttentionOptions scaled_by(double scale) {
  AttentionOptions options;
  options.scale = static_cast<float>(scale);
  return options;
}

std::vector<double> row_sums(const Tensor& x) {
  const auto values = to_doubles(x);
  std::vector<double> sums(static_cast<size_t>(x.dim(0)));
  for (size_t i = 0; i < values.size(); ++i) sums[i / static_cast<size_t>(x.dim(1))] += values[i];
  return sums;
}

// Returns the rows that a record names, or all rows.
Tensor chosen_rows(const Example& e, const Tensor& x) {
  if (!e.has_parameter("rows")) return x;
  std::vector<double> values;
  const auto rows = e.parameter("rows").get<std::vector<int64_t>>();
  for (const int64_t row : rows)
    for (const double value : to_doubles(x.rows(row, row + 1))) values.push_back(value);
  return tensor_of(values, {std::ssize(rows), x.dim(1)}, x.dtype());
}

// Computes self-attention without projections.
Head self(const Example& e, const AttentionOptions& options) {
  const Tensor x = e.tensor("X");
  return attend(x, x, x, options);
}

Head plain_self(const Example& e) { return self(e, scaled_by(0.5)); }  // the width of a head is 4

void weights_of_tokens(Example& e) {
  const Tensor weights = plain_self(e).weights;
  e.expect("weights", chosen_rows(e, weights));
}

void outputs_of_tokens(Example& e) { e.expect("output", chosen_rows(e, plain_self(e).output)); }

void weights_and_outputs(Example& e, const Head& head) {
  e.expect("weights", head.weights);
  e.expect("output", head.output);
}

void permuted(Example& e) {
  const auto order = e.parameter("perm").get<std::vector<int64_t>>();
  const Tensor x = e.tensor("X");
  std::vector<double> values;
  for (const int64_t row : order)
    for (const double value : to_doubles(x.rows(row, row + 1))) values.push_back(value);
  const Tensor moved = tensor_of(values, x.shape(), x.dtype());
  weights_and_outputs(e, attend(moved, moved, moved, scaled_by(0.5)));
}

Head two_queries(const Example& e, const AttentionOptions& options) {
  return attend(e.tensor("Q"), e.tensor("K"), e.tensor("V"), options);
}

void two_queries_three_keys(Example& e) {
  const double scale = 1 / std::sqrt(3.0);
  const Head head = two_queries(e, scaled_by(scale));
  e.expect("scores_scaled",
           fovea::scale(linear(e.tensor("Q"), e.tensor("K")), static_cast<float>(scale)));
  e.expect("row_sums", row_sums(head.weights));
  weights_and_outputs(e, head);
}

// Computes attention for each query separately; its valid keys are those that are not blocked.
void blocked_keys(Example& e) {
  const auto mask = e.values("mask");
  const Tensor q = e.tensor("Q"), k = e.tensor("K"), v = e.tensor("V");
  std::vector<double> weights, output;
  for (int64_t row = 0; row < q.dim(0); ++row) {
    AttentionOptions options = scaled_by(1 / std::sqrt(3.0));
    Interval seen{0, 0};
    while (seen.end < k.dim(0) && mask[static_cast<size_t>(row * k.dim(0) + seen.end)] == 0)
      ++seen.end;
    options.mask.valid = {seen};
    const Head head = attend(q.rows(row, row + 1), k, v, options);
    for (const double w : to_doubles(head.weights)) weights.push_back(w);
    for (const double y : to_doubles(head.output)) output.push_back(y);
  }
  e.expect("weights", weights);
  e.expect("output", output);
}

void causal(Example& e) {
  AttentionOptions options = scaled_by(0.5);
  options.mask.causal = true;
  weights_and_outputs(e, self(e, options));
}

void padding_hidden(Example& e) {
  AttentionOptions options = scaled_by(0.5);
  int64_t real = 0;
  for (const int64_t padding : e.parameter("key_padding")) real += padding == 0;
  options.mask.valid = {{0, real}};
  weights_and_outputs(e, self(e, options));
}

void divisors(Example& e) {
  std::vector<double> weights;
  for (const double divisor : e.parameter("divisors"))
    for (const double w : to_doubles(two_queries(e, scaled_by(1 / divisor)).weights))
      weights.push_back(w);
  e.expect("weights", weights);
}

void projected(Example& e) {
  const Tensor x = e.tensor("X");
  const auto by = [&](const char* matrix) { return linear(x, transposed(e.tensor(matrix))); };
  weights_and_outputs(e, attend(by("W_q"), by("W_k"), by("W_v"), scaled_by(1 / std::sqrt(2.0))));
}

// Compares the mask as a matrix that is added to the scores: 0 for visible keys, the fill value for
// the other keys.
void additive_mask(Example& e) {
  const int64_t n = e.integer("n");
  Mask mask;
  mask.causal = true;
  std::vector<double> matrix(static_cast<size_t>(n * n), e.parameter("fill").get<double>());
  for (int64_t q = 0; q < n; ++q) {
    Interval seen[Mask::kMostIntervals];
    const int count = mask.intervals(0, q, n, seen);
    for (int i = 0; i < count; ++i)
      for (int64_t k = seen[i].begin; k < seen[i].end; ++k)
        matrix[static_cast<size_t>(q * n + k)] = 0;
  }
  e.expect("mask", matrix);
}

// In the record, a fill of -1e9 for all keys masks nothing in double precision, and in float it
// absorbs the scores. In fovea, a query without visible keys has weights of 0 and the output 0.
void nothing_to_see(Example& e) {
  const auto filled = [&](DType dtype) {
    return softmax(shift(tensor_of(e.values("scores"), {1, 3}, dtype), -1e9f));
  };
  e.expect("double_additive", filled(DType::f64));
  e.expect("float32_additive", filled(DType::f32));
  e.pass_over("minus_infinity", "text; fovea's definition is checked here");
  AttentionOptions options;
  options.mask.valid = {{0, 0}};
  const Tensor ones = full({3, 4}, 1, e.dtype());
  const Head head = attend(ones, ones, ones, options);
  for (const Tensor& x : {head.weights, head.output})
    for (const double value : to_doubles(x)) EXPECT_EQ(value, 0);
}

void softmax_of(Example& e, const char* input) {
  const Tensor x = e.tensor(input);
  e.expect("softmax", softmax(x.view({1, x.size()})));
}

// The logarithm of the sum follows from -log softmax, and the exponentials are the softmax times
// the sum.
void softmax_in_steps(Example& e) {
  const Tensor x = e.tensor("x").view({1, 3});
  const double loss = to_doubles(cross_entropy(x, zeros({1}, DType::i32)))[0];
  const double sum = std::exp(loss + e.values("x")[0]);
  std::vector<double> exponentials = to_doubles(softmax(x));
  for (double& value : exponentials) value *= sum;
  e.expect("sum", sum);
  e.expect("exp", exponentials);
  softmax_of(e, "x");
}

void saturation(Example& e) {
  std::vector<double> norms;
  for (const float multiplier : e.parameter("multipliers")) {
    double squares = 0;
    for (int64_t i = 0; i < 3; ++i) {
      Tensor x = e.tensor("x").view({1, 3});
      x = scale(x, multiplier);
      x.want_gradient();
      std::vector<double> unit(3);
      unit[static_cast<size_t>(i)] = 1;
      backward(linear(softmax(x), tensor_of(unit, {1, 3}, e.dtype())).view({1}));
      for (const double g : to_doubles(x.gradient())) squares += g * g;
    }
    norms.push_back(std::sqrt(squares));
  }
  e.expect("jacobian_fro", norms);
}

void temperatures(Example& e) {
  std::vector<float> logits;
  for (const double value : e.values("logits")) logits.push_back(static_cast<float>(value));
  std::vector<double> all;
  for (const double temperature : e.parameter("T")) {
    infer::Sampling options;
    options.temperature = static_cast<float>(temperature);
    options.top_k = 0;
    options.top_p = 1;
    std::vector<double> row(logits.size());
    for (const auto& candidate :
         infer::Sampler(options).distribution(logits.data(), std::ssize(logits)))
      row[static_cast<size_t>(candidate.token)] = candidate.probability;
    all.insert(all.end(), row.begin(), row.end());
  }
  e.expect("probs", all);
}

void blend(Example& e) {
  const Tensor weights = e.tensor("weights").view({1, 2});
  const Tensor y = linear(weights, full({1, 2}, 1, e.dtype()));  // values of 1
  e.expect("weight_sum", y);
}

// Compares the variance of dot products of random vectors before and after the scaling of
// attention.
void variances(Example& e) {
  const auto samples = e.parameter("samples").get<double>();
  const auto widths = e.values("d_k");
  for (size_t i = 0; i < widths.size(); ++i) {
    Random random(1, Stream::init, 0);
    double sum = 0, squares = 0;
    for (int n = 0; n < static_cast<int>(samples); ++n) {
      double dot = 0;
      for (int j = 0; j < static_cast<int>(widths[i]); ++j)
        dot += double{random.normal()} * double{random.normal()};
      sum += dot;
      squares += dot * dot;
    }
    const double variance = squares / samples - sum * sum / samples / samples;
    const double raw = e.expected("variance_raw")["data"][i];
    EXPECT_NEAR(variance / raw, 1, e.expected("variance_raw")["rel_tol"].get<double>());
    const double scaled = e.expected("variance_scaled")["data"][i];
    EXPECT_NEAR(variance / widths[i] / scaled, 1,
                e.expected("variance_scaled")["rel_tol"].get<double>());
  }
}

void alibi(Example& e) {
  // The first of eight heads has the slope 1/2, as in the record.
  model::StackSpec stack;
  stack.attention.heads = 8;
  stack.position = {.kind = model::PositionKind::none, .bias = model::DistanceBias::alibi};
  const auto bias_for = [&](int64_t n) {
    model::LayerPass pass;
    model::Positions(stack, n, 8, true).prepare(pass, n, {});
    return pass.distance_bias.rows(0, 1);  // [1, 2 n - 1]
  };
  const int64_t n = e.integer("n");
  const auto row = to_doubles(bias_for(n));
  std::vector<double> matrix;
  for (int64_t q = 0; q < n; ++q)
    for (int64_t k = 0; k < n; ++k) matrix.push_back(row[static_cast<size_t>(k - q + n - 1)]);
  e.expect("bias", matrix);
  AttentionOptions options = scaled_by(0.5);
  options.bias = convert(bias_for(3), e.dtype());
  const Tensor x = tensor_of({1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0}, {3, 4}, e.dtype());
  e.expect("attn3_weights_no_mask", attend(x, x, x, options).weights);
}

void slopes(Example& e) {
  const int64_t heads = e.integer("H");
  std::vector<double> all;
  for (int64_t h = 0; h < heads; ++h) all.push_back(model::alibi_slope(h, heads));
  e.expect("slopes", all);
}

// Returns the maximum of each column. No value of Pooling computes a maximum, so route() with
// one choice finds its row.
Tensor largest_of_columns(const Tensor& x) {
  const Tensor turned = transposed(x);
  return pick(turned, route(turned, {}).experts);
}

void pooled(Example& e) {
  const Tensor tokens = e.tensor("tokens"), x = tokens.view({1, 3, 4});
  int64_t real = 0;
  for (const double padding : e.values("pad_mask")) real += padding == 0;
  const std::vector<Interval> valid = {{0, real}};
  e.expect("cls", model::pool(x, model::Pooling::first, valid));
  e.expect("mean_all", model::pool(x, model::Pooling::mean, {}));
  e.expect("mean_excluding_pad", model::pool(x, model::Pooling::mean, valid));
  e.expect("max_all", largest_of_columns(tokens));
  e.expect("max_excluding_pad", largest_of_columns(tokens.rows(0, real)));
  e.expect("last_all", model::pool(x, model::Pooling::last, {}));
  e.expect("last_non_pad", model::pool(x, model::Pooling::last, valid));
}

}  // namespace

Checks attention_checks() {
  const auto softmax_of_x = [](Example& e) { softmax_of(e, "x"); };
  return {
      {"s000.attn3.scores",
       [](Example& e) { e.expect("scores", linear(e.tensor("X"), e.tensor("X"))); }},
      {"s000.attn3.scaled",
       [](Example& e) {
         e.expect("scaled",
                  scale(linear(e.tensor("X"), e.tensor("X")), e.parameter("scale").get<float>()));
       }},
      {"s000.attn3.weights.rows01", weights_of_tokens},
      {"s000.attn3.weights.row2", weights_of_tokens},
      {"s000.attn3.weights.full",
       [](Example& e) {
         weights_of_tokens(e);
         e.expect("row_sums", row_sums(plain_self(e).weights));
       }},
      {"s000.attn3.output.rows01", outputs_of_tokens},
      {"s000.attn3.output.row2", outputs_of_tokens},
      {"s000.attn3.output.full", outputs_of_tokens},
      {"s000.blend.7030", blend},
      {"s000.softmax.row0", softmax_in_steps},
      {"s003.softmax.100", softmax_of_x},
      {"s003.softmax.1000", softmax_of_x},
      {"d.softmax.scaled10", softmax_of_x},
      {"s001.code.unstable_softmax", [](Example& e) { softmax_of(e, "scaled_scores"); }},
      {"d.softmax.saturation.jacobian", saturation},
      {"d.temperature", temperatures},
      {"s004.variance", variances},
      {"s004.attn2x3", two_queries_three_keys},
      {"d.s004.attn2x3.boolmask", blocked_keys},
      {"d.s004.divisor", divisors},
      {"d.s000.attn3.causal", causal},
      {"d.s000.attn3.padding", padding_hidden},
      {"s00x.perm", permuted},
      {"d.s001.selfattn", projected},
      {"s003.causal.4", additive_mask},
      {"d.mask.fully_masked", nothing_to_see},
      {"s000.alibi", alibi},
      {"d.alibi.slopes", slopes},
      {"d.pooling", pooled},
  };
}

}  // namespace fovea::worked
