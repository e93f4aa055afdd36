#include <fmt/format.h>

#include "unit/ops/cases.h"

namespace fovea::test {
namespace {

// Returns logits whose differences far exceed the step of the finite differences, so that the step
// changes no choice of experts.
Tensor distinct_logits(int64_t rows, int64_t experts) {
  Tensor x = empty({rows, experts}, DType::f64);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t row = i / experts, expert = i % experts;
    x.data_as<double>()[i] = 0.125 * static_cast<double>((expert * 7 + row * 3) % experts) - 1;
  }
  return x;
}

// Returns k experts per row: r, r + 3, ... for row r, modulo `experts`.
Tensor some_experts(int64_t rows, int64_t k, int64_t experts) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < rows * k; ++i)
    values.push_back(static_cast<int32_t>((i / k + i % k * 3) % experts));
  return integers(values, {rows, k});
}

struct ExpertSize {
  int64_t rows, experts, k;
};
const std::vector<ExpertSize> kSizes = {{1, 1, 1}, {5, 4, 2}, {67, 5, 1}, {3, 65, 7}, {1, 5, 5}};

void add_routers(std::vector<Case>& all) {
  for (const auto& [rows, experts, k] : kSizes) {
    const std::string what = fmt::format("{} of {} for {} rows", k, experts, rows);
    const Tensor logits = distinct_logits(rows, experts);
    for (const bool normalise : {false, true}) {
      // A single normalised weight is always 1, so the gradient consists of rounding errors.
      if (experts == 1 || (normalise && k == 1)) continue;
      RouteOptions options{.choice = {.chosen = k}, .normalise = normalise};
      const auto put = [&](const std::string& kind, const Tensor& bias) {
        all.push_back({"route", what + kind, {logits}, [=](auto& in) {
                         const Tensor own = bias ? convert(bias, in[0].dtype()) : bias;
                         return route(in[0], options, own).weights;
                       }});
      };
      put(normalise ? ", normalised" : "", {});
      options.scale = 2.5f;
      put(", biased", distinct_logits(1, experts).view({experts}));
      options.sigmoid = true;
      put(normalise ? ", normalised sigmoids" : ", sigmoids", {});
      if (experts % 5 != 0 || k > experts / 5 * 2) continue;
      options.choice.groups = 5;
      options.choice.groups_chosen = 2;
      put(", in groups", {});
    }
    // Differences of the logits are multiples of 1/8, and no ratio is that of the tolerance.
    if (experts > 1 && k < experts)
      all.push_back({"sparse_mixer", what, {logits}, [=](auto& in) {
                       return sparse_mixer(in[0], k, 0.231f).weights;
                     }});
    const Tensor chosen = some_experts(rows, k, experts);
    all.push_back({"pick", what, {logits}, [=](auto& in) { return pick(in[0], chosen); }});
    all.push_back({"pick", what + ", twice", {logits}, [=](auto& in) {
                     return pick(in[0], some_experts(in[0].dim(0), 3, 1));
                   }});
    if (k == experts) continue;  // half of the experts are fewer than k
    const Tensor uneven = some_experts(rows, k, (experts + 1) / 2);
    std::vector<int32_t> some(static_cast<size_t>(rows), 1), none(static_cast<size_t>(rows), 0);
    for (size_t i = 1; i < some.size(); i += 3) some[i] = 0;
    for (const Tensor& valid : {Tensor(), integers(some, {rows}), integers(none, {rows})}) {
      all.push_back(
          {"balance_loss",
           what + (valid ? fmt::format(", first valid {}", *valid.data_as<int32_t>()) : ""),
           {logits},
           [=](auto& in) { return balance_loss(softmax(in[0]), uneven, valid); }});
    }
  }
}

void add_shares(std::vector<Case>& all) {
  for (const Shape& shape : {Shape{1, 2}, {3, 7}, {2, 3, 33}, {67, 65}}) {
    Tensor x = empty(shape, DType::f64);
    for (int64_t i = 0; i < x.size(); ++i)
      x.data_as<double>()[i] = 0.125 + static_cast<double>(i * 7 % 65) / 64;
    all.push_back(
        {"divide_by_sum", describe(shape), {x}, [](auto& in) { return divide_by_sum(in[0]); }});
  }
}

void add_expert_layers(std::vector<Case>& all) {
  const std::vector<std::vector<int64_t>> counts = {{1}, {3, 0, 5}, {0, 67, 2}, {0, 0}};
  for (const std::vector<int64_t>& c : counts) {
    int64_t rows = 0;
    for (const int64_t count : c) rows += count;
    std::vector<Tensor> inputs{rounded({rows, 7}, 1)};
    for (size_t e = 0; e < c.size(); ++e) inputs.push_back(rounded({11, 7}, 2 + e, 0.5));
    const auto weights = [n = c.size()](auto& in) {
      return std::vector<Tensor>(in.begin() + 1, in.begin() + 1 + static_cast<std::ptrdiff_t>(n));
    };
    const std::string what = fmt::format("{}", fmt::join(c, ", "));
    all.push_back({"grouped_linear", what, inputs,
                   [=](auto& in) { return grouped_linear(in[0], c, weights(in), {}); }});
    for (size_t e = 0; e < c.size(); ++e) inputs.push_back(rounded({11}, 9 + e));
    all.push_back({"grouped_linear", what + " with biases", inputs, [=](auto& in) {
                     const auto n = static_cast<std::ptrdiff_t>(c.size());
                     return grouped_linear(in[0], c, weights(in), {in.begin() + 1 + n, in.end()});
                   }});
  }
  all.push_back({"grouped_linear",
                 "of one weight twice",
                 {rounded({5, 3}, 1), rounded({4, 3}, 2)},
                 [](auto& in) { return grouped_linear(in[0], {2, 3}, {in[1], in[1]}, {}); }});
}

void add_combinations(std::vector<Case>& all) {
  for (const auto& [rows, experts, k] : kSizes) {
    for (const int64_t width : {1, 7, 67}) {
      const Tensor slots = group_by_expert(some_experts(rows, k, experts), experts).slots;
      all.push_back({"combine",
                     fmt::format("{} of {} rows, width {}", k, rows, width),
                     {rounded({rows * k, width}, 1), rounded({rows, k}, 2)},
                     [=](auto& in) { return combine(in[0], slots, in[1]); }});
    }
  }
}

// Adds a complete mixture of experts: gradients of the router, the rows and the experts.
void add_mixture(std::vector<Case>& all) {
  all.push_back({"combine",
                 "of a mixture",
                 {rounded({6, 6}, 1), distinct_logits(6, 4), rounded({3, 6}, 2), rounded({3, 6}, 3),
                  rounded({3, 6}, 4), rounded({3, 6}, 5)},
                 [](auto& in) {
                   const auto [weights, experts] = route(in[1], {.choice = {.chosen = 2}});
                   const auto [rows, slots, counts] = group_by_expert(experts, 4);
                   const Tensor z =
                       grouped_linear(gather(rows, in[0]), counts, {in.begin() + 2, in.end()}, {});
                   return cast(combine(z, slots, weights), in[0].dtype());
                 }});
}

}  // namespace

void add_expert_cases(std::vector<Case>& all) {
  add_routers(all);
  add_shares(all);
  add_expert_layers(all);
  add_combinations(all);
  add_mixture(all);
}

}  // namespace fovea::test
