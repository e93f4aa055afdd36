// Mixtures of experts.

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/weights.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea {

Routing route(const Tensor& logits, const RouteOptions& o, const Tensor& bias) {
  const auto [k, groups, groups_chosen] = o.choice;
  check(logits.rank() == 2 && k > 0 && k <= logits.dim(1),
        "route: {} choices of logits {}; expected [R, E] and 1 to E choices", k, logits.shape());
  const Rows rows = rows_of(logits);
  check(
      groups > 0 && rows.width % groups == 0 && groups_chosen > 0 && groups_chosen <= groups &&
          k <= rows.width / groups * groups_chosen,
      "route: {} choices in {} of {} groups of {} experts; expected equal groups, and at most the "
      "experts of those chosen",
      k, groups_chosen, groups, rows.width);
  check(!bias || bias.shape() == Shape{rows.width},
        "route: bias is {}, logits are {}; expected [E] and [R, E]", bias.shape(), logits.shape());
  const auto scores_of = [&](const Tensor& z) {
    return o.sigmoid ? activation(cast(z, working_type(z)), Activation::sigmoid) : softmax(z);
  };
  Tensor experts = empty({rows.count, k}, DType::i32, logits.device());
  // Without a bias, the order of the scores is that of the logits.
  kernels(logits).choose_experts(experts, bias ? scores_of(logits.detach()) : logits, bias,
                                 o.choice, rows);
  Tensor weights;
  if (o.sigmoid) {
    weights = scores_of(pick(logits, experts));
    if (o.normalise) weights = divide_by_sum(weights);
  } else {
    // The softmax over the chosen logits equals the chosen weights divided by their sum.
    weights = o.normalise ? softmax(pick(logits, experts)) : pick(softmax(logits), experts);
  }
  return {o.scale == 1 ? weights : scale(weights, o.scale), experts};
}

namespace {

// Returns 0 for the experts that share the softmax of each choice, -infinity for the others:
// [R k, E].
template <class Number>
Tensor closeness(const Tensor& logits, const Tensor& experts, float tolerance) {
  const int64_t R = logits.dim(0), E = logits.dim(1), k = experts.dim(1);
  const HostValues<Number> values(logits);
  const HostValues<int32_t> chosen(experts);
  std::vector<Number> mask(static_cast<size_t>(R * k * E));
  for (int64_t i = 0; i < R * k; ++i) {
    const int64_t first = i / k * k;  // the row's first choice
    const Number best = values[i / k * E + chosen[i]];
    for (int64_t e = 0; e < E; ++e) {
      const Number z = values[i / k * E + e];
      bool close = !((best - z) / std::max(std::abs(z), best) > 2 * Number{tolerance});
      for (int64_t j = first; j < i; ++j) close = close && chosen[j] != e;
      if (!close) mask[static_cast<size_t>(i * E + e)] = -std::numeric_limits<Number>::infinity();
    }
  }
  return tensor_from<Number>({R * k, E}, [&](int64_t i) { return mask[static_cast<size_t>(i)]; })
      .to(logits.device());
}

}  // namespace

Routing sparse_mixer(const Tensor& logits, int64_t chosen, float tolerance) {
  check(logits.rank() == 2 && chosen > 0 && chosen <= logits.dim(1),
        "sparse_mixer: {} choices of logits {}; expected [R, E] and 1 to E choices", chosen,
        logits.shape());
  const Rows rows = rows_of(logits);
  const Tensor experts = empty({rows.count, chosen}, DType::i32, logits.device());
  kernels(logits).choose_experts(experts, logits, {}, {.chosen = chosen}, rows);
  const Tensor z = cast(logits, working_type(logits));
  const Tensor mask = z.dtype() == DType::f64 ? closeness<double>(z.detach(), experts, tolerance)
                                              : closeness<float>(z.detach(), experts, tolerance);
  std::vector<int32_t> repeated;  // each row once for each choice
  for (int64_t i = 0; i < rows.count * chosen; ++i)
    repeated.push_back(static_cast<int32_t>(i / chosen));
  const Tensor copies =
      gather(tensor_of(repeated, {rows.count * chosen}).to(logits.device()), z);  // [R k, E]
  const Tensor shares = softmax(add(copies, mask));
  const Tensor weights = pick(shares, experts.view({rows.count * chosen, 1}));
  return {weights.view(experts.shape()), experts};
}

Groups group_by_expert(const Tensor& experts, int64_t expert_count) {
  check(experts.rank() == 2 && experts.dtype() == DType::i32 && expert_count > 0 &&
            experts.size() <= std::numeric_limits<int32_t>::max(),
        "group_by_expert: choices are {} {} of {} experts; expected int32 [R, k], fewer than 2^31 "
        "choices and at least one expert",
        name_of(experts.dtype()), experts.shape(), expert_count);
  const Kernels& k = kernels(experts);
  const int64_t wrong = k.first_outside(experts, experts.size(), expert_count);
  if (wrong >= 0)
    fail(ErrorKind::InvalidArgument, "group_by_expert: expert {} at position {}; expected 0 to {}",
         HostValues<int32_t>(experts)[wrong], wrong, expert_count - 1);
  Groups groups{empty({experts.size()}, DType::i32, experts.device()), empty_like(experts),
                std::vector<int64_t>(static_cast<size_t>(expert_count))};
  k.group_by_expert(groups.rows, groups.slots, groups.counts.data(), experts, experts.dim(0),
                    experts.dim(1), expert_count);
  return groups;
}

namespace {

struct Group {
  size_t expert;
  int64_t begin, count;  // rows
};

// Returns the groups that have rows.
std::vector<Group> groups_of(const std::vector<int64_t>& counts) {
  std::vector<Group> groups;
  int64_t begin = 0;
  for (size_t e = 0; e < counts.size(); ++e) {
    if (counts[e] > 0) groups.push_back({e, begin, counts[e]});
    begin += counts[e];
  }
  return groups;
}

template <class Weight>
void check_groups(const Tensor& x, const std::vector<int64_t>& counts,
                  const std::vector<Weight>& weights, const std::vector<Tensor>& biases) {
  check(!weights.empty() && counts.size() == weights.size() &&
            (biases.empty() || biases.size() == weights.size()),
        "grouped_linear: {} counts, {} weights, {} biases; expected equal numbers", counts.size(),
        weights.size(), biases.size());
  int64_t rows = 0;
  for (const int64_t count : counts) {
    check(count >= 0, "grouped_linear: a group of {} rows; expected at least 0", count);
    rows += count;
  }
  const Shape shape = shape_of(weights[0]);
  check(x.rank() == 2 && x.dim(0) == rows && shape.size() == 2 && shape[1] == x.dim(1),
        "grouped_linear: x is {}, {} rows are in groups, weights are {}; expected [rows, C] and "
        "[N, C]",
        x.shape(), rows, shape);
  for (const Weight& weight : weights) {
    check(shape_of(weight) == shape, "grouped_linear: weights are {} and {}; expected equal shapes",
          shape, shape_of(weight));
  }
  for (const Tensor& bias : biases) {
    check(bias.shape() == Shape{shape[0]},
          "grouped_linear: a bias is {}, weights are {}; expected [N] and [N, C]", bias.shape(),
          shape);
  }
}

// `weights` are Tensors or PackedWeights, which get no gradient.
template <class Weight>
Tensor grouped_with(const Tensor& x, const std::vector<int64_t>& counts,
                    const std::vector<Weight>& weights, const std::vector<Tensor>& biases) {
  const int64_t outputs = shape_of(weights[0])[0], width = x.dim(1);
  const std::vector<Group> groups = groups_of(counts);
  Tensor y = empty({x.dim(0), outputs}, x.dtype(), x.device());
  for (const auto& [e, begin, count] : groups) {
    multiply(kernels(x), at(Out(y), begin * outputs), at(In(x), begin * width), weights[e],
             biases.empty() ? In{} : In(biases[e]), {count, outputs, width, false, true});
  }
  std::vector<Tensor> inputs{x};
  if constexpr (kIsDense<Weight>) inputs.insert(inputs.end(), weights.begin(), weights.end());
  inputs.insert(inputs.end(), biases.begin(), biases.end());
  bool trains_weights = false;  // else the elements of x are not needed
  if constexpr (kIsDense<Weight>)
    trains_weights = std::any_of(weights.begin(), weights.end(),
                                 [](const Tensor& weight) { return weight.wants_gradient(); });
  return record(
      y, inputs,
      [=, x = trains_weights ? Saved(x) : Saved::slot(x)](const Tensor& dy, Gradients& d) {
        // For each group: dx = dy weight,   dweight = dy^T x,   dbias = sum over rows of dy
        const Kernels& k = kernels(dy);
        const Tensor elements = trains_weights ? x.elements() : Tensor();
        const Out dx = d[x];
        for (const auto& [e, begin, count] : groups) {
          const In part = at(In(dy), begin * outputs);
          if (!biases.empty() && d.wants(biases[e]))
            k.sum_rows(d[biases[e]], part, {count, outputs});
          if constexpr (kIsDense<Weight>) {
            if (d.wants(weights[e])) {
              k.gemm(d[weights[e]], part, at(In(elements), begin * width), {},
                     {outputs, width, count, true, false});
            }
          }
          if (dx.data != nullptr) {
            multiply(k, at(dx, begin * width), part, weights[e], {},
                     {count, width, outputs, false, false});
          }
        }
      });
}

}  // namespace

Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<Tensor>& weights, const std::vector<Tensor>& biases) {
  check_groups(x, counts, weights, biases);
  return grouped_with(x, counts, weights, biases);
}

Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<PackedWeight>& weights, const std::vector<Tensor>& biases) {
  check_groups(x, counts, weights, biases);
  if (weights[0].multiplies_exactly()) return grouped_with(x, counts, weights, biases);
  const int64_t outputs = weights[0].matrix().outputs, width = x.dim(1);
  Tensor y = empty({x.dim(0), outputs}, x.dtype(), x.device());
  for (const auto& [e, begin, count] : groups_of(counts)) {
    const Tensor bias = biases.empty() ? Tensor() : biases[e];
    if (!weights[e].packed_for_use()) {
      multiply_late(y.rows(begin, begin + count), x.rows(begin, begin + count), {weights[e], bias});
      continue;
    }
    const PackedProduct product{at(Out(y), begin * outputs), bias, weights[e].packed()};
    kernels(x).packed_linear({&product, 1}, at(In(x), begin * width), count);
  }
  return y;
}

namespace {

void check_slots(const Tensor& slots, int64_t count) {
  std::vector<bool> seen(static_cast<size_t>(count));
  const HostValues<int32_t> all(slots);
  for (int64_t i = 0; i < all.size(); ++i) {
    const int32_t slot = all[i];
    check(slot >= 0 && slot < count && !seen[static_cast<size_t>(slot)],
          "combine: slots[{}] is {}; expected 0 to {}, each once", i, slot, count - 1);
    seen[static_cast<size_t>(slot)] = true;
  }
}

}  // namespace

Tensor combine(const Tensor& z, const Tensor& given, const Tensor& weights) {
  const Tensor slots = given.to(z.device());
  check(z.rank() == 2 && slots.rank() == 2 && slots.dtype() == DType::i32 &&
            slots.size() == z.dim(0) && weights.shape() == slots.shape(),
        "combine: z is {}, slots are {} {}, weights {}; expected [R*k, C], int32 [R, k], [R, k]",
        z.shape(), name_of(slots.dtype()), slots.shape(), weights.shape());
  check_slots(given, z.dim(0));
  const Rows r{slots.dim(0), z.dim(1)};
  const int64_t choices = slots.dim(1);
  Tensor y = empty({r.count, r.width}, working_type(z), z.device());
  kernels(z).combine(y, z, slots, weights, choices, r);
  return record(y, {z, weights}, [=, z = Saved(z)](const Tensor& dy, Gradients& d) {
    // dz[slot] = weight * dy,   dweight = dy . z[slot]
    kernels(dy).combine_backward(d[z], d[weights], dy, z.elements(), slots, weights, choices, r);
  });
}

namespace {

// Returns the factors of the probabilities in the loss: E * (choices of the expert / rows) / rows;
// 0 in rows that are not valid. Counts on the host.
Tensor factors(const Tensor& experts, const Tensor& valid, Rows r, DType dtype) {
  const HostValues<int32_t> choices(experts);
  const HostValues<int32_t> counted(valid ? valid : full({r.count}, 1, DType::i32));
  const auto counts = [&](int64_t row) { return counted[row] != 0; };
  const int64_t k = experts.dim(1);
  std::vector<double> chosen(static_cast<size_t>(r.width));
  double rows = 0;
  for (int64_t row = 0; row < r.count; ++row) {
    rows += counts(row) ? 1 : 0;
    for (int64_t j = row * k; j < (row + 1) * k; ++j) {
      const int32_t expert = choices[j];
      check(expert >= 0 && expert < r.width,
            "balance_loss: expert {} at position {}; expected 0 to {}", expert, j, r.width - 1);
      chosen[static_cast<size_t>(expert)] += counts(row) ? 1 : 0;
    }
  }
  const double factor = rows == 0 ? 0 : static_cast<double>(r.width) / (rows * rows);
  const Tensor all = tensor_from<double>({r.count, r.width}, [&](int64_t i) {
    return counts(i / r.width) ? factor * chosen[static_cast<size_t>(i % r.width)] : 0;
  });
  return convert(all, dtype);
}

}  // namespace

Tensor balance_loss(const Tensor& probabilities, const Tensor& experts, const Tensor& valid) {
  check(probabilities.rank() == 2 && experts.rank() == 2 && experts.dtype() == DType::i32 &&
            experts.dim(0) == probabilities.dim(0),
        "balance_loss: probabilities are {}, experts {} {}; expected [R, E] and int32 [R, k]",
        probabilities.shape(), name_of(experts.dtype()), experts.shape());
  check(!valid || (valid.dtype() == DType::i32 && valid.shape() == Shape{probabilities.dim(0)}),
        "balance_loss: valid is {} {}, probabilities are {}; expected int32 [R]",
        name_of(valid.dtype()), valid.shape(), probabilities.shape());
  const Tensor factor = factors(experts.to(cpu_device()), valid.to(cpu_device()),
                                rows_of(probabilities), working_type(probabilities))
                            .to(probabilities.device());
  const Kernels& k = kernels(factor);
  const Tensor products = multiply(cast(probabilities.detach(), factor.dtype()), factor);
  Tensor loss = full({1}, k.sum(products, products.size()), factor.dtype());
  return record(
      loss, {probabilities}, [=, p = Saved::slot(probabilities)](const Tensor& dy, Gradients& d) {
        kernels(factor).scale(d[p], factor, static_cast<float>(number_of(dy)), factor.size());
      });
}

}  // namespace fovea
