#include "nn/ffn.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/common.h"

namespace fovea::model {
namespace {

bool is_dense(const ExpertsSpec& experts, int64_t layer) {
  const auto& dense = experts.dense_layers;
  return experts.count == 0 || std::find(dense.begin(), dense.end(), layer) != dense.end();
}

// Returns scale B A x, where the next counts[e] rows of x use the adapter of expert e. The adapters
// of the experts of a layer have the same rank and scale.
Tensor change_by_expert(const Tensor& x, const std::vector<int64_t>& counts,
                        const std::vector<const LowRankAdapter*>& adapters, const Pass& pass) {
  std::vector<Tensor> downs, ups;
  for (const LowRankAdapter* adapter : adapters) {
    downs.push_back(adapter->down.value);
    ups.push_back(adapter->up.value);
  }
  const Dropout& input_dropout = adapters.front()->input_dropout;
  const Tensor input =
      dropout(x, pass.dropout_at(input_dropout.probability, input_dropout.substream));
  const Tensor narrow = grouped_linear(input, counts, downs, {});
  return scale(grouped_linear(narrow, counts, ups, {}), adapters.front()->scale);
}

// Returns the vector [C] once for each row of x [R, C], of its dtype.
Tensor repeated(const Tensor& vector, const Tensor& x) {
  const Tensor first = zeros({1, x.dim(0)}, DType::i32).to(x.device());
  return cast(embedding(first, vector.view({1, x.dim(1)})), x.dtype()).view(x.shape());
}

// The sorted choices of some tokens: their indices, i32 [n], and their number for each expert.
struct ChosenRows {
  Tensor rows;
  std::vector<int64_t> counts;
};

ChosenRows groups_with(const Groups& groups, const Tensor& tokens) {
  const int32_t* const first = tokens.data_as<int32_t>();  // ascending
  std::vector<int32_t> rows;
  ChosenRows chosen{{}, std::vector<int64_t>(groups.counts.size())};
  int64_t row = 0;
  for (size_t e = 0; e < groups.counts.size(); ++e) {
    for (const int64_t end = row + groups.counts[e]; row < end; ++row) {
      if (!std::binary_search(first, first + tokens.size(), groups.rows.data_as<int32_t>()[row]))
        continue;
      rows.push_back(static_cast<int32_t>(row));
      ++chosen.counts[e];
    }
  }
  chosen.rows = tensor_of(rows, {std::ssize(rows)});
  return chosen;
}

}  // namespace

FeedForward::FeedForward(const StackSpec& stack, int64_t width, int64_t layer_)
    : spec(stack.ffn.experts),
      kind(stack.ffn.activation),
      gated(stack.ffn.gated),
      gate_limit(stack.ffn.gate_limit),
      up_offset(stack.ffn.up_offset),
      layer(layer_) {
  const auto make = [&](int64_t inner, bool bias, Linear& g, Linear& u, Linear& d) {
    const bool inner_bias = bias && stack.ffn.inner_bias;
    if (gated) g = Linear(width, inner, inner_bias);
    u = Linear(width, inner, inner_bias);
    d = Linear(inner, width, bias, Role::residual_matrix);
  };
  const bool bias = stack.ffn.bias;
  if (is_dense(spec, layer)) {
    make(stack.ffn.width, bias, gate, up, down);
    inner_norm = Norm(stack.norm, stack.ffn.width, stack.ffn.inner_norm);
    xielu = Xielu(stack.ffn.xielu);
    return;
  }
  router = Linear(width, spec.count, spec.router_bias);
  if (spec.selection_bias) selection_bias = {{spec.count}, Role::selection_bias, {}};
  if (spec.sum_bias) sum_bias = {{width}, Role::bias, {}};
  experts.resize(static_cast<size_t>(spec.count));
  for (Expert& expert : experts)
    make(spec.width, bias && !spec.sum_bias, expert.gate, expert.up, expert.down);
  if (spec.shared > 0) make(spec.shared_width, bias, shared.gate, shared.up, shared.down);
  if (spec.shared_gate) shared_gate = Linear(width, 1, false);
}

Tensor FeedForward::gated_product(const Tensor& given, const Tensor& factors) const {
  Tensor gates = given, ups = factors;
  if (gate_limit > 0) {
    gates = clip(gates, std::numeric_limits<float>::lowest(), gate_limit);
    ups = clip(ups, -gate_limit, gate_limit);
  }
  if (up_offset > 0) ups = shift(ups, up_offset);
  return gated_activation(gates, ups, kind);
}

Tensor FeedForward::activated_inner(const Tensor& x, const Tensor& factors) const {
  const Tensor y = factors           ? gated_product(x, factors)
                   : xielu.present() ? xielu(x)
                                     : activation(x, kind);
  return inner_norm.present() ? inner_norm(y, y.dtype()) : y;
}

Tensor FeedForward::projected(const Tensor& x, const Linear& g, const Linear& u, const Linear& d,
                              const Pass& pass, const Tensor& residual) const {
  using What = ProbePoint::What;
  const bool plain = !gated && !xielu.present() && !inner_norm.present();
  if (plain && pass.probe == nullptr)
    return added_to(residual, d, activated(u, x, kind, pass), pass);
  if (!gated) {
    const Tensor before =
        probed(pass, What::mlp_pre, layer, u(x, pass, pass.added_type(x.dtype())));
    return added_to(residual, d, probed(pass, What::mlp_hidden, layer, activated_inner(before)),
                    pass);
  }
  const auto [gates, factors] = all_of(x, pass, g, u);
  const Tensor before = probed(pass, What::mlp_pre, layer, gates);
  const Tensor hidden = probed(pass, What::mlp_hidden, layer, activated_inner(before, factors));
  return added_to(residual, d, hidden, pass);
}

Tensor FeedForward::operator()(const Tensor& x, const Pass& pass, const Tensor& residual) const {
  if (experts.empty()) return projected(x, gate, up, down, pass, residual);
  const Tensor y = mix(x, pass);
  return residual ? add(residual, y) : y;
}

Tensor FeedForward::router_logits(const Tensor& tokens) const {
  return linear(tokens, router.weight, router.bias.value, working_type(tokens));
}

Tensor FeedForward::router_scores(const Tensor& logits) const {
  return spec.score == ExpertScore::sigmoid ? activation(logits, Activation::sigmoid)
                                            : softmax(logits);
}

Routing FeedForward::routing(const Tensor& logits) const {
  if (spec.score == ExpertScore::sparse_mixer) {
    Routing mixed = sparse_mixer(logits, spec.chosen, spec.tolerance);
    if (spec.scale != 1) mixed.weights = scale(mixed.weights, spec.scale);
    return mixed;
  }
  return route(logits,
               {.choice = {spec.chosen, spec.groups, spec.groups_chosen},
                .normalise = spec.normalise,
                .sigmoid = spec.score == ExpertScore::sigmoid,
                .scale = spec.scale},
               selection_bias.value);
}

// With a gate, each row has one weight. Probes do not see the shared expert.
Tensor FeedForward::shared_output(const Tensor& tokens, const Pass& pass) const {
  Pass unseen;
  unseen.compute = pass.compute;
  unseen.training = pass.training;
  unseen.dropout = pass.dropout;
  unseen.adapted_rows = pass.adapted_rows;
  const Tensor y = projected(tokens, shared.gate, shared.up, shared.down, unseen, {});  // [R, C]
  if (!shared_gate.weight.present()) return y;
  const Tensor weights = activation(linear(tokens, shared_gate.weight, {}, working_type(tokens)),
                                    Activation::sigmoid);  // [R, 1]
  const Tensor slots = empty(weights.shape(), DType::i32);
  std::iota(slots.data_as<int32_t>(), slots.data_as<int32_t>() + slots.size(), 0);
  return combine(y, slots, weights);
}

// The outputs of one matrix of all experts for x, the rows of `groups` in their order.
Tensor FeedForward::by_expert(const Tensor& x, const Groups& groups, Linear Expert::* part,
                              const Pass& pass) const {
  std::vector<Tensor> matrices, biases;
  std::vector<PackedWeight> packed;
  std::vector<const LowRankAdapter*> adapters;
  int64_t row = 0;
  for (size_t e = 0; e < experts.size(); row += groups.counts[e++]) {
    const Linear& matrix = experts[e].*part;
    if (groups.counts[e] > 0)
      probe_product(pass, matrix.weight, x.rows(row, row + groups.counts[e]));
    if (matrix.weight.packed)
      packed.push_back(matrix.weight.packed);
    else
      matrices.push_back(matrix.weight.value);
    if (matrix.bias.present()) biases.push_back(matrix.bias.value);
    adapters.push_back(&matrix.adapter);
  }
  Tensor y = packed.empty() ? grouped_linear(x, groups.counts, matrices, biases)
                            : grouped_linear(x, groups.counts, packed, biases);
  if (adapters.front()->present()) y = add(y, change_by_expert(x, groups.counts, adapters, pass));
  if (!(experts.front().*part).alternatives.empty())
    for (const AdaptedRows& some : pass.adapted_rows) adapt_rows(y, x, groups, part, some);
  return y;
}

void FeedForward::adapt_rows(const Tensor& y, const Tensor& x, const Groups& groups,
                             Linear Expert::* part, const AdaptedRows& some) const {
  std::vector<const LowRankAdapter*> adapters;
  for (const Expert& expert : experts)
    adapters.push_back(&(expert.*part).alternatives[some.adapter]);
  if (!adapters.front()->present()) return;
  const auto [rows, counts] = groups_with(groups, some.rows);
  if (rows.size() == 0) return;
  const Tensor changed =
      add(gather(rows, y), change_by_expert(gather(rows, x), counts, adapters, {}));
  const int64_t bytes = static_cast<int64_t>(changed.bytes()) / changed.dim(0);
  for (int64_t i = 0; i < changed.dim(0); ++i)
    copy_bytes(y, rows.data_as<int32_t>()[i] * bytes, changed, i * bytes, bytes);
}

// Sorts tokens by expert, so that each matrix of an expert needs one product for all of its tokens.
Tensor FeedForward::mix(const Tensor& x, const Pass& pass) const {
  const Tensor tokens = x.view({x.size() / x.dim(-1), x.dim(-1)});
  const Tensor logits = router_logits(tokens);     // [R, E]
  const auto [weights, chosen] = routing(logits);  // [R, k]
  const Groups groups = group_by_expert(chosen, spec.count);
  if (pass.side_losses != nullptr && spec.balance > 0) {
    const Tensor scores = router_scores(logits);
    const Tensor shares = spec.score == ExpertScore::sigmoid ? divide_by_sum(scores) : scores;
    pass.side_losses->push_back(scale(balance_loss(shares, chosen), spec.balance));
  }

  const auto output = [&](const Tensor& rows, Linear Expert::* part) {
    return by_expert(rows, groups, part, pass);
  };
  const Tensor sorted = gather(groups.rows, tokens);  // [R k, C]
  const Tensor first = output(sorted, gated ? &Expert::gate : &Expert::up);
  const Tensor inner =
      gated ? gated_product(first, output(sorted, &Expert::up)) : activation(first, kind);
  Tensor y = combine(output(inner, &Expert::down), groups.slots, weights);  // [R, C]
  if (sum_bias.present()) y = add(y, repeated(sum_bias.value, y));
  if (has_shared()) y = add(y, shared_output(tokens, pass));
  return cast(y, x.dtype()).view(x.shape());
}

}  // namespace fovea::model
