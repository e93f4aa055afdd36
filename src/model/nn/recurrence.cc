#include "nn/recurrence.h"

#include <algorithm>

#include "base/error.h"
#include "ops/common.h"
#include "tensor/tape.h"

namespace fovea::model {
namespace {

// Copies `count` elements of row `from_row`, from column `from_column` on, to row `to_row`, from
// column `to_column` on.
void copy_part(const Tensor& to, int64_t to_row, int64_t to_column, const Tensor& from,
               int64_t from_row, int64_t from_column, int64_t count) {
  const auto size = static_cast<int64_t>(size_of(from.dtype()));
  copy_bytes(to, (to_row * to.dim(1) + to_column) * size, from,
             (from_row * from.dim(1) + from_column) * size, count * size);
}

// The op of a recurrence multiplies by the matrix itself, so an adapter of it would have no effect.
void check_no_adapter(const Linear& hidden) {
  check(!hidden.adapter.present(), "recurrence: the hidden matrix has an adapter; expected none");
}

}  // namespace

Recurrence::Recurrence(const StackSpec& stack, int64_t model_width, int64_t layer_, const Dropout&)
    : cell(cell_of(mixer_of(stack, layer_))), width(stack.recurrence.width), layer(layer_) {
  const int64_t gates = gates_of(cell) * width;
  input = Linear(model_width, gates, stack.recurrence.bias);
  hidden = Linear(width, gates, stack.recurrence.bias);
  if (width != model_width) output = Linear(width, model_width, false, Role::residual_matrix);
}

PagePool::Layer Recurrence::cached(const StackSpec& stack, int64_t layer, DType) {
  constexpr Reach kPreviousState{.window = 2};  // a token reads the state after the one before it
  return {.keys = {},
          .values = {},
          .state_size = states_of(cell_of(mixer_of(stack, layer))) * stack.recurrence.width,
          .reach = kPreviousState};
}

// The states, and the gates in the working type and as the product wrote them.
double Recurrence::kept_bytes(const StackSpec& stack, int64_t layer, double element) {
  const Cell cell = cell_of(mixer_of(stack, layer));
  return static_cast<double>(stack.recurrence.width) *
         (4 * static_cast<double>(states_of(cell) + kept_of(cell)) +
          element * static_cast<double>(1 + gates_of(cell)));
}

Tensor Recurrence::operator()(const Tensor& x, const Pass& pass, const Tensor& residual) const {
  check(pass.mask.documents == nullptr,
        "recurrence: the mask divides rows into documents; expected one document per row");
  const Tensor gates = probed(pass, ProbePoint::What::gates, layer, input(x, pass));
  const Tensor y =
      projected(probed(pass, ProbePoint::What::state, layer, states(gates, pass)), pass);
  return residual ? add(residual, y) : y;
}

Tensor Recurrence::states(const Tensor& gates, const Pass& pass) const {
  return pass.cache == nullptr ? from_zero(gates) : from_cache(gates, *pass.cache);
}

// u = h weight^T + bias, in the working type.   h [R, W] -> [R, G W]
Tensor Recurrence::recurrent_part(const Tensor& h, DType compute) const {
  check_no_adapter(hidden);
  return linear(cast(h, compute), hidden.weight, hidden.bias.value, h.dtype());
}

Tensor Recurrence::from_zero(const Tensor& gates) const {
  check_no_adapter(hidden);
  const PackedWeight& packed = hidden.weight.packed;
  if (!packed) return recurrence(gates, hidden.weight.value, hidden.bias.value, cell);
  // A product for each token would unpack the matrix each time.
  if (packed.multiplies_exactly())
    return recurrence(gates, packed.floats(), hidden.bias.value, cell);
  const int64_t B = gates.dim(0), T = gates.dim(1);
  std::vector<Text> texts;
  for (int64_t b = 0; b < B; ++b) texts.push_back({b * T, T});
  return step_by_step(gates, texts, nullptr);
}

Tensor Recurrence::from_cache(const Tensor& gates, KvCache& cache) const {
  std::vector<Text> texts;
  int64_t row = 0;
  for (const KvCache::Member& member : cache.members()) {
    texts.push_back({row, member.tokens});
    row += member.tokens;
  }
  return step_by_step(gates, texts, &cache);
}

// Advances all texts by one token at a time, so that one product serves all of them. A text's
// result does not depend on the others.
Tensor Recurrence::step_by_step(const Tensor& gates, const std::vector<Text>& texts,
                                KvCache* cache) const {
  check(!recording(), "recurrence: decoding has no gradients; expected NoGradient");
  const int64_t G = gates_of(cell), S = states_of(cell), W = width;
  const Tensor x = gates.view({gates.size() / (G * W), G * W});
  Shape shape = gates.shape();
  shape.back() = W;
  const Device& device = x.device();
  const Tensor result = empty(shape, x.dtype(), device), y = result.view({x.dim(0), W});
  const Tensor states =  // [h | c] of each text
      zeros({std::ssize(texts), S * W}, working_type(x), device);
  int64_t longest = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    longest = std::max(longest, texts[i].tokens);
    if (cache != nullptr) cache->load_state(layer, i, states);
  }
  for (int64_t t = 0; t < longest; ++t) {
    std::vector<int64_t> active, rows;  // the texts that have this token, and its row in x
    for (size_t i = 0; i < texts.size(); ++i) {
      if (t >= texts[i].tokens) continue;
      active.push_back(static_cast<int64_t>(i));
      rows.push_back(texts[i].row + t);
    }
    const int64_t R = std::ssize(active);
    const Tensor inputs = empty({R, G * W}, x.dtype(), device);
    CellState state = zero_state(cell, R, W, states.dtype(), device);
    for (int64_t r = 0; r < R; ++r) {
      const auto at = static_cast<size_t>(r);
      copy_part(inputs, r, 0, x, rows[at], 0, G * W);
      copy_part(state.h, r, 0, states, active[at], 0, W);
      if (S == 2) copy_part(state.c, r, 0, states, active[at], W, W);
    }
    const Tensor h = recurrent_step(inputs, recurrent_part(state.h, x.dtype()), state, cell);
    for (int64_t r = 0; r < R; ++r) {
      const auto at = static_cast<size_t>(r);
      copy_part(y, rows[at], 0, h, r, 0, W);
      copy_part(states, active[at], 0, state.h, r, 0, W);
      if (S == 2) copy_part(states, active[at], W, state.c, r, 0, W);
      if (cache != nullptr) cache->store_state(layer, static_cast<size_t>(active[at]), t, states);
    }
  }
  return result;
}

}  // namespace fovea::model
