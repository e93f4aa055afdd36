#include "unit/ops/cases.h"

#include <fmt/format.h>

#include <numeric>
#include <tuple>

#include "ops/largest_products.h"
#include "support/top_probabilities.h"

namespace fovea::test {

Tensor rounded(Shape shape, uint64_t seed, double deviation) {
  return convert(convert(normal(std::move(shape), seed, deviation), DType::bf16), DType::f64);
}

Tensor integers(const std::vector<int32_t>& values, Shape shape) {
  Tensor y = empty(std::move(shape), DType::i32);
  std::copy(values.begin(), values.end(), y.data_as<int32_t>());
  return y;
}

namespace {

const std::vector<Shape> kShapes = {{1, 1}, {3, 7}, {2, 3, 5}, {1, 131}, {67, 3}, {9, 65}};

// Returns numbers from 0.5 to 2.5.
Tensor positive(const Shape& shape) {
  Tensor y = empty(shape, DType::f64);
  for (int64_t i = 0; i < y.size(); ++i)
    y.data_as<double>()[i] = 0.5 + static_cast<double>(i * 7 % 65) / 32;
  return y;
}

void add_linear(std::vector<Case>& all) {
  struct Size {
    Shape x;
    int64_t outputs;
  };
  for (const auto& [x, outputs] : {Size{{1, 1}, 1}, Size{{7}, 3}, Size{{2, 3, 5}, 11},
                                   Size{{67, 33}, 17}, Size{{3, 130}, 65}, Size{{1, 31}, 257}}) {
    const Tensor weight = rounded({outputs, x.back()}, 2, 0.5);
    const std::string what = fmt::format("{} to {}", describe(x), outputs);
    all.push_back({"linear",
                   what + " with bias",
                   {rounded(x, 1), weight, rounded({outputs}, 3)},
                   [](auto& in) { return linear(in[0], in[1], in[2]); }});
    all.push_back(
        {"linear", what, {rounded(x, 1), weight}, [](auto& in) { return linear(in[0], in[1]); }});
    const int64_t rank = outputs % 5 + 1;
    const Tensor down = rounded({rank, x.back()}, 4, 0.5), up = rounded({outputs, rank}, 5, 0.5);
    all.push_back({"adapted_linear", what, {rounded(x, 1), weight, down, up}, [](auto& in) {
                     return adapted_linear(in[0], in[1], {}, {in[0], in[2], in[3], 0.75f});
                   }});
    all.push_back({"adapted_linear",
                   what + " with bias and an input of its own",
                   {rounded(x, 1), weight, rounded({outputs}, 3), rounded(x, 6), down, up},
                   [](auto& in) {
                     return adapted_linear(in[0], in[1], in[2], {in[3], in[4], in[5], 0.75f});
                   }});
  }
}

void add_embedding(std::vector<Case>& all) {
  for (const int64_t width : {1, 5, 67}) {
    all.push_back(
        {"embedding", fmt::format("width {}", width), {rounded({7, width}, 1)}, [](auto& in) {
           return embedding(integers({3, 0, 3, 6, 6, 6}, {2, 3}), in[0]);
         }});
  }
  all.push_back({"embedding", "one row", {rounded({1, 3}, 1)}, [](auto& in) {
                   return embedding(integers({0}, {1}), in[0]);
                 }});
  // The gathered rows are the output of another op and are used twice, like the rows of experts.
  all.push_back({"gather", "used twice", {rounded({5, 9}, 1)}, [](auto& in) {
                   const Tensor x = scale(in[0], 2);
                   return add(gather(integers({4, 1, 1, 0, 3, 4, 4, 2, 1}, {9}), x),
                              gather(integers({0, 0, 4, 4, 1, 3, 1, 2, 2}, {9}), x));
                 }});
}

void add_norms(std::vector<Case>& all) {
  for (const Shape& shape : kShapes) {
    const int64_t width = shape.back();
    const Tensor x = rounded(shape, 1, 2), weight = rounded({width}, 2);
    for (const float epsilon : {1e-5f, 0.5f}) {
      const std::string what = fmt::format("{}, epsilon {}", describe(shape), epsilon);
      // The norm of a single element is nearly constant (0 for layer_norm, its sign for rms_norm):
      // with a small epsilon, its gradient consists of rounding errors.
      if (width == 1 && epsilon < 0.1f) continue;
      all.push_back(
          {"layer_norm", what + " with bias", {x, weight, rounded({width}, 3)}, [=](auto& in) {
             return layer_norm(in[0], in[1], in[2], epsilon, in[0].dtype());
           }});
      all.push_back({"layer_norm", what, {x, weight}, [=](auto& in) {
                       return layer_norm(in[0], in[1], {}, epsilon, in[0].dtype());
                     }});
      all.push_back({"layer_norm", what + " outside the root", {x, weight}, [=](auto& in) {
                       return layer_norm(in[0], in[1], {}, {epsilon, true}, in[0].dtype());
                     }});
      all.push_back({"rms_norm", what, {x, weight}, [=](auto& in) {
                       return rms_norm(in[0], in[1], epsilon, in[0].dtype());
                     }});
    }
    all.push_back({"scale_columns", describe(shape), {x, weight}, [](auto& in) {
                     return scale_columns(in[0], in[1]);
                   }});
    all.push_back({"scale_columns",
                   describe(shape) + " with bias",
                   {x, weight, rounded({width}, 5)},
                   [](auto& in) { return scale_columns(in[0], in[1], in[2]); }});
    all.push_back({"inverse_row_lengths",
                   describe(shape),
                   {x.view({x.size() / width, width})},
                   [](auto& in) { return inverse_row_lengths(in[0]); },
                   false});
    const Tensor alpha = rounded({1}, 4, 0.5), bias = rounded({width}, 3);
    all.push_back({"dynamic_tanh", describe(shape), {x, alpha, weight}, [](auto& in) {
                     return dynamic_tanh(in[0], in[1], in[2], {}, in[0].dtype());
                   }});
    all.push_back(
        {"dynamic_tanh", describe(shape) + " with bias", {x, alpha, weight, bias}, [](auto& in) {
           return dynamic_tanh(in[0], in[1], in[2], in[3], in[0].dtype());
         }});
  }
}

void add_xielu(std::vector<Case>& all) {
  for (const Shape& shape : kShapes) {
    // Not within a step of 0 or epsilon, where the derivative has steps.
    Tensor x = rounded(shape, 1, 2);
    for (double& v : x.span<double>())
      if (std::abs(v + 0.125) < 0.2) v += v > -0.125 ? 0.25 : -0.25;
    const auto number = [](double value) { return full({1}, value, DType::f64); };
    all.push_back({"xielu", describe(shape), {x, number(0.25), number(-1)}, [=](auto& in) {
                     const auto fixed = [&](double value) {
                       return convert(number(value), in[1].dtype());
                     };
                     return xielu(in[0], in[1], in[2], fixed(0.5), fixed(-0.25));
                   }});
  }
}

void add_elementwise(std::vector<Case>& all) {
  for (const Shape& shape : kShapes) {
    const std::string what = describe(shape);
    const Tensor a = rounded(shape, 1, 2), b = rounded(shape, 2);
    all.push_back({"add", what, {a, b}, [](auto& in) { return add(in[0], in[1]); }});
    all.push_back({"add", what + " to itself", {a}, [](auto& in) { return add(in[0], in[0]); }});
    all.push_back({"multiply", what, {a, b}, [](auto& in) { return multiply(in[0], in[1]); }});
    all.push_back(
        {"multiply", what + " by itself", {a}, [](auto& in) { return multiply(in[0], in[0]); }});
    all.push_back({"cast", what, {a}, [](auto& in) {
                     const DType from = in[0].dtype();
                     const DType other = from == DType::f32 ? DType::bf16 : DType::f32;
                     return cast(in[0], from == DType::f64 ? DType::f64 : other);
                   }});
    for (const Activation kind : {Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                  Activation::silu, Activation::tanh, Activation::quick_gelu,
                                  Activation::relu_squared, Activation::sigmoid}) {
      all.push_back(
          {"activation", fmt::format("{} of {}", static_cast<int>(kind), what), {a}, [=](auto& in) {
             return activation(in[0], kind);
           }});
    }
    all.push_back({"gated_activation", what, {a, b}, [](auto& in) {
                     return gated_activation(in[0], in[1], Activation::silu);
                   }});
    all.push_back({"scale", what, {a}, [](auto& in) { return scale(in[0], -0.75f); }});
    all.push_back({"shift", what, {a}, [](auto& in) { return shift(in[0], 1.5f); }});
    for (const float cap : {0.5f, 30.0f}) {
      all.push_back({"softcap", fmt::format("{} of {}", cap, what), {a}, [=](auto& in) {
                       return softcap(in[0], cap);
                     }});
    }
    if (shape.back() > 1)
      all.push_back({"softmax", what, {a}, [](auto& in) { return softmax(in[0]); }});
    for (const float probability : {0.0f, 0.2f, 0.9f}) {
      const Dropout options{.probability = probability, .seed = 3, .substream = 2, .step = 9};
      all.push_back({"dropout", fmt::format("{} of {}", probability, what), {a}, [=](auto& in) {
                       return dropout(in[0], options);
                     }});
    }
  }
}

void add_cross_entropy(std::vector<Case>& all) {
  const auto put = [&](Shape shape, const std::vector<int32_t>& targets, double divisor,
                       float smoothing = 0) {
    const Shape places(shape.begin(), shape.end() - 1);
    all.push_back({"cross_entropy",
                   fmt::format("{}, divisor {}, first target {}, smoothing {}", describe(shape),
                               divisor, targets[0], smoothing),
                   {rounded(shape, 1, 2)},
                   [=](auto& in) {
                     return cross_entropy(in[0], integers(targets, places), divisor, smoothing);
                   }});
  };
  for (const double divisor : {0.0, 1.0, 7.5}) {
    put({1, 1}, {0}, divisor);
    put({5, 7}, {6, 0, 3, 3, 1}, divisor);
    put({2, 3, 131}, {130, -1, 0, 67, -100, 5}, divisor);
    put({2, 3}, {-1, -100}, divisor);
    put({5, 7}, {6, 0, -1, 3, 1}, divisor, 0.1f);
    put({2, 1, 131}, {130, 7}, divisor, 0.75f);
  }
}

void add_kl_divergence(std::vector<Case>& all) {
  const auto put = [&](Shape shape, int64_t k, float temperature, double divisor) {
    const int64_t V = shape.back(), R = elements(shape) / V;
    const TopProbabilities p = top_probabilities(rounded({R, V}, 2, 2), k, temperature);
    if (R > 2) ignore_row(p, 1);
    all.push_back({"kl_divergence",
                   fmt::format("{}, {} classes, temperature {}", describe(shape), k, temperature),
                   {rounded(shape, 1, 2)},
                   [=](auto& in) {
                     return kl_divergence(in[0], for_dtype(p, in[0].dtype()), divisor, temperature);
                   }});
  };
  put({1, 1}, 1, 1, 0);
  for (const float temperature : {1.0f, 2.5f}) {
    put({5, 7}, 7, temperature, 0);
    put({2, 3, 131}, 5, temperature, 3.5);
    put({2, 67}, 66, temperature, 1);
  }
}

void add_linear_cross_entropy(std::vector<Case>& all) {
  const std::vector<int32_t> targets = {130, -1, 0, 67, -100, 5};
  const TopProbabilities teacher = top_probabilities(rounded({6, 131}, 4, 2), 9, 2);
  for (const LogitBlocks blocks : {LogitBlocks{}, LogitBlocks{1, 1}, LogitBlocks{4, 50}}) {
    for (const float smoothing : {0.0f, 0.1f}) {
      for (const float cap : {0.0f, 3.0f}) {
        const LossOptions options{
            .divisor = 2.5, .smoothing = smoothing, .softcap = cap, .blocks = blocks};
        const auto loss = [=](const Tensor& a, const Tensor& b, const Tensor& bias) {
          const Distillation distillation{for_dtype(teacher, a.dtype()), 2, 0.3f};
          LossOptions all_options = options;
          if (smoothing > 0) all_options.distillation = &distillation;
          return linear_cross_entropy(a, b, bias, integers(targets, {2, 3}), all_options);
        };
        const std::string what = fmt::format("blocks of {} rows, {} columns, smoothing {}, cap {}",
                                             blocks.rows, blocks.columns, smoothing, cap);
        const Tensor x = rounded({2, 3, 7}, 1), weight = rounded({131, 7}, 2, 0.5);
        all.push_back({"linear_cross_entropy", what, {x, weight}, [=](auto& in) {
                         return loss(in[0], in[1], {});
                       }});
        all.push_back({"linear_cross_entropy",
                       what + ", bias",
                       {x, weight, rounded({131}, 3)},
                       [=](auto& in) { return loss(in[0], in[1], in[2]); }});
      }
    }
  }
}

void add_linear_log_probability(std::vector<Case>& all) {
  const Tensor targets = integers({130, -1, 0, 67, -100, 5}, {2, 3});
  const Tensor x = rounded({2, 3, 7}, 1), weight = rounded({131, 7}, 2, 0.5);
  for (const LogitBlocks blocks : {LogitBlocks{}, LogitBlocks{1, 1}, LogitBlocks{4, 50}}) {
    for (const float cap : {0.0f, 3.0f}) {
      const std::string what =
          fmt::format("blocks of {} rows, {} columns, cap {}", blocks.rows, blocks.columns, cap);
      all.push_back({"linear_log_probability", what, {x, weight}, [=](auto& in) {
                       return linear_log_probability(in[0], in[1], {}, targets, cap, blocks);
                     }});
      all.push_back({"linear_log_probability",
                     what + ", bias",
                     {x, weight, rounded({131}, 3)},
                     [=](auto& in) {
                       return linear_log_probability(in[0], in[1], in[2], targets, cap, blocks);
                     }});
    }
  }
}

void add_reductions(std::vector<Case>& all) {
  for (const Shape& shape : kShapes) {
    const std::string what = describe(shape);
    const Tensor a = rounded(shape, 1);
    all.push_back({"subtract", what, {a, rounded(shape, 2)}, [](auto& in) {
                     return subtract(in[0], in[1]);
                   }});
    all.push_back({"sum", what, {a}, [](auto& in) { return sum(in[0]); }});
    all.push_back({"mean", what, {a}, [](auto& in) { return mean(in[0]); }});
    all.push_back({"log_sigmoid", what, {a}, [](auto& in) { return log_sigmoid(in[0]); }});
    all.push_back({"exp", what, {a}, [](auto& in) { return exp(in[0]); }});
    all.push_back({"log", what, {positive(shape)}, [](auto& in) { return log(in[0]); }});
    all.push_back(
        {"minimum", what, {a, rounded(shape, 2)}, [](auto& in) { return minimum(in[0], in[1]); }});
    all.push_back({"minimum", "equal elements of " + what, {a}, [](auto& in) {
                     return minimum(scale(in[0], 2), add(in[0], in[0]));
                   }});
    all.push_back({"clip", what, {a}, [](auto& in) { return clip(in[0], -0.7f, 0.4f); }});
  }
  all.push_back({"segment_sums", "some of them empty", {rounded({3, 5}, 1)}, [](auto& in) {
                   return segment_sums(in[0], {4, 0, 10, 1});
                 }});
  all.push_back({"segment_sums", "used twice", {rounded({6}, 1)}, [](auto& in) {
                   const Tensor x = scale(in[0], 2);
                   return add(segment_sums(x, {2, 4}), segment_sums(x, {5, 1}));
                 }});
  all.push_back({"log_probability", "ignored rows", {rounded({2, 3, 131}, 1, 2)}, [](auto& in) {
                   return log_probability(in[0], integers({130, -1, 0, 67, -100, 5}, {2, 3}));
                 }});
  all.push_back(
      {"log_probability", "longer than a block", {rounded({3, 1031}, 1, 2)}, [](auto& in) {
         return log_probability(in[0], integers({1030, 0, 1024}, {3}));
       }});
  all.push_back({"log_probability", "used twice", {rounded({5, 7}, 1, 2)}, [](auto& in) {
                   const Tensor x = scale(in[0], 2);
                   return subtract(log_probability(x, integers({6, 0, 3, 3, 1}, {5})),
                                   log_probability(x, integers({1, 0, 2, -1, 5}, {5})));
                 }});
}

void add_recurrences(std::vector<Case>& all) {
  struct Size {
    int64_t batch, tokens, width;
  };
  for (const Cell cell : {Cell::rnn, Cell::gru, Cell::lstm}) {
    const int64_t gates = gates_of(cell);
    for (const auto& [B, T, W] : {Size{1, 1, 1}, Size{2, 5, 3}, Size{3, 4, 17}}) {
      const std::string what =
          fmt::format("cell {}, {} x {} x {}", static_cast<int>(cell), B, T, W);
      const Tensor x = rounded({B, T, gates * W}, 1), weight = rounded({gates * W, W}, 2, 0.5);
      all.push_back(
          {"recurrence", what + " with bias", {x, weight, rounded({gates * W}, 3)}, [=](auto& in) {
             return recurrence(in[0], in[1], in[2], cell);
           }});
      all.push_back({"recurrence", what, {x, weight}, [=](auto& in) {
                       return recurrence(in[0], in[1], {}, cell);
                     }});
    }
  }
  all.push_back({"recurrent_step",
                 "of three texts",
                 {rounded({3, 20}, 1), rounded({3, 20}, 2)},
                 [](auto& in) {
                   const bool exact = in[0].dtype() == DType::f64;
                   CellState state = zero_state(Cell::lstm, 3, 5, exact ? DType::f64 : DType::f32);
                   const Tensor u = exact ? in[1] : convert(in[1], DType::f32);
                   return recurrent_step(in[0], u, state, Cell::lstm);
                 },
                 false});
}

void add_linear_attentions(std::vector<Case>& all) {
  struct Size {
    int64_t B, T, H, G, D, V;
  };
  for (const auto& [B, T, H, G, D, V] :
       {Size{1, 1, 1, 1, 1, 1}, Size{2, 5, 2, 1, 3, 7}, Size{1, 67, 2, 2, 5, 3}}) {
    const Tensor decay = rounded({B, T, H}, 5, 0.3);
    for (int64_t i = 0; i < decay.size(); ++i)
      decay.data_as<double>()[i] = -std::abs(decay.data_as<double>()[i]);
    for (const bool delta : {false, true})
      all.push_back({"linear_attention",
                     fmt::format("{} x {}, {} of {} heads, {} x {}{}", B, T, G, H, D, V,
                                 delta ? ", delta rule" : ""),
                     {rounded({B, T, G, D}, 1), rounded({B, T, G, D}, 2, 0.3),
                      rounded({B, T, H, V}, 3), rounded({B, T, H}, 4, 0.5), decay},
                     [=](auto& in) {
                       const DType gates = in[0].dtype() == DType::f64 ? DType::f64 : DType::f32;
                       return linear_attention(in[0], in[1], in[2], cast(in[3], gates),
                                               cast(in[4], gates), {0.5f, delta});
                     }});
    all.push_back({"causal_conv",
                   fmt::format("{} x {} x {}, kernel {}", B, T, D, V),
                   {rounded({B, T, D}, 1), rounded({D, V}, 2), rounded({D}, 3)},
                   [](auto& in) { return causal_conv(in[0], in[1], in[2]); }});
    all.push_back({"causal_conv",
                   fmt::format("{} x {} x {}, kernel {}, no bias", B, T, D, V),
                   {rounded({B, T, D}, 1), rounded({D, V}, 2)},
                   [](auto& in) { return causal_conv(in[0], in[1], {}); }});
  }
}

void add_largest_products(std::vector<Case>& all) {
  for (const auto& [R, C, counts] : {std::tuple{int64_t{1}, int64_t{1}, std::vector<int64_t>{1}},
                                     {7, 3, {2, 0, 5}},
                                     {67, 33, {1, 9, 3}},
                                     {3, 130, {17}}}) {
    const int64_t S = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    all.push_back({"largest_products",
                   fmt::format("of {} rows and {} texts", R, counts.size()),
                   {rounded({R, C}, 1), rounded({S, C}, 2)},
                   [=](auto& in) { return largest_products(in[0], in[1], counts); }});
  }
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> all;
  add_linear(all);
  add_embedding(all);
  add_norms(all);
  add_elementwise(all);
  add_xielu(all);
  add_cross_entropy(all);
  add_kl_divergence(all);
  add_linear_cross_entropy(all);
  add_linear_log_probability(all);
  add_reductions(all);
  add_attention_cases(all);
  add_position_cases(all);
  add_expert_cases(all);
  add_recurrences(all);
  add_linear_attentions(all);
  add_largest_products(all);
  return all;
}

}  // namespace fovea::test
