#include "plan/memory.h"

#include <algorithm>

#include "nn/mixer.h"
#include "ops/ops.h"
#include "spec/mixers.h"

namespace fovea::train {
namespace {

struct Widths {  // widths of the parts of a token's state in a layer
  double model, queries, keys, values, results, heads;
};

Widths widths_of(const model::Spec& s, const model::StackSpec& stack) {
  const model::AttentionSpec& a = stack.attention;
  return {static_cast<double>(s.width),
          static_cast<double>(a.heads * a.head_width),
          static_cast<double>(a.kv_heads * a.head_width),
          static_cast<double>(a.kv_heads * a.value_width),
          static_cast<double>(a.heads * a.value_width),
          static_cast<double>(a.heads)};
}

// Hidden elements per token in the feed-forward layers: the sum over all layers, and the number in
// the widest layer.
struct Hidden {
  double all = 0, widest = 0;
};

Hidden hidden_of(const model::StackSpec& stack) {
  if (!stack.ffn.present) return {};
  const model::ExpertsSpec& e = stack.ffn.experts;
  const auto dense = static_cast<double>(stack.ffn.width);
  const auto layers = static_cast<double>(stack.layers);
  if (e.count == 0) return {layers * dense, dense};
  const auto chosen = static_cast<double>(e.chosen * e.width + e.shared_width);
  const auto without = static_cast<double>(e.dense_layers.size());
  return {without * dense + (layers - without) * chosen, std::max(without > 0 ? dense : 0, chosen)};
}

// Returns the bytes of a matrix of all scores [H, T, T] of one sequence in a layer that stores
// them: in disentangled attention.
double score_bytes(const model::StackSpec& stack, double tokens) {
  if (stack.position.bias != model::DistanceBias::disentangled) return 0;
  return 4 * static_cast<double>(stack.attention.heads) * tokens * tokens;
}

// Returns the bytes kept for the backward pass of one sequence. Per layer and token: two states of
// the residual stream and the statistics of their norms; what its mixer keeps; the hidden elements
// of the feed-forward layer before and after the activation, or the two factors of a gated one.
// Norms are computed again. Stored scores are kept as weights, before and after their dropout.
double kept(const model::Spec& s, const model::StackSpec& stack, double tokens, double element) {
  const auto width = static_cast<double>(s.width);
  double mixers = 0;
  for (int64_t layer = 0; layer < stack.layers; ++layer)
    mixers += model::mixer_facts(model::mixer_of(stack, layer)).kept_bytes(stack, layer, element);
  const double streams = static_cast<double>(stack.layers) * (8 * width + 16);
  const double weights = (s.dropout.attention > 0 ? 2 : 1) * static_cast<double>(stack.layers);
  return tokens * (streams + mixers + 2 * element * hidden_of(stack).all + 4 * width) +
         weights * score_bytes(stack, tokens);
}

// Returns the bytes that cross-attention keeps for the backward pass of one sequence.
double kept_across(const model::Spec& s, const Lengths& lengths, double element) {
  const Widths w = widths_of(s, *s.decoder);
  const double of_target = 4 * w.model + 8 + element * (w.queries + w.results) + 4 * w.heads;
  return static_cast<double>(s.decoder->layers) *
         (static_cast<double>(lengths.target) * of_target +
          static_cast<double>(lengths.source) * element * (w.keys + w.values));
}

// Returns the bytes of temporaries in a layer: in the backward pass of the widest feed-forward
// layer, or of stored scores and their two terms, which are sums over the buckets of distances.
double passing(const model::Spec& s, const model::StackSpec& stack, double tokens, double element) {
  constexpr double kScores = 4;
  const double scores = score_bytes(stack, tokens),
               buckets = static_cast<double>(stack.position.buckets),
               terms = scores > 0 ? 2 * scores / tokens * buckets : 0;
  return std::max(
      tokens * (3 * element * hidden_of(stack).widest + 12 * static_cast<double>(s.width)),
      kScores * scores + terms);
}

// Returns the bytes of the logits of `rows` tokens and of their gradients. If they are computed in
// blocks, these are kept before and after a soft cap, gradients are in the type of the products,
// and the gradient of the head's input is kept.
double logit_bytes(const model::Spec& s, int64_t rows, double element, bool frozen_head) {
  if (s.head.kind != model::HeadKind::language_model) return 0;
  const int64_t all = s.vocabulary * rows;
  if (all <= (frozen_head ? kLogitsOfBlock : kLogitsAtOnce)) return 8 * static_cast<double>(all);
  const LogitBlocks blocks = logit_blocks(rows, s.vocabulary);
  const int64_t columns = frozen_head ? 0 : blocks.columns;
  const int64_t most = std::max(blocks.rows * s.vocabulary, columns * rows);
  const double capped = s.head.softcap > 0 ? 12 : 0, summed = s.head.bias ? 4 : 0;
  return (4 + element + capped + summed) * static_cast<double>(most) +
         element * static_cast<double>(rows * s.width);
}

}  // namespace

double activation_bytes(const model::Spec& s, const Lengths& lengths, int64_t batch, double element,
                        const Savings& savings) {
  double bytes = 0, most = 0;
  const auto add = [&](const model::StackSpec& stack, int64_t length, double across) {
    const auto tokens = static_cast<double>(length), layers = static_cast<double>(stack.layers);
    const double all = kept(s, stack, tokens, element) + across;
    const double of_layer = all / std::max(layers, 1.0);
    const double input = 4 * static_cast<double>(s.width) * tokens;
    const double again =
        savings.recompute < 0 ? layers : std::min(layers, static_cast<double>(savings.recompute));
    bytes += again * input + (layers - again) * of_layer;
    // The other layers are freed before the first layers are computed again.
    const double recorded = again == layers ? of_layer : 0;
    most = std::max(most, recorded + passing(s, stack, tokens, element));
  };
  if (s.encoder) add(*s.encoder, lengths.source, 0);
  const double across = s.encoder && s.decoder ? kept_across(s, lengths, element) : 0;
  if (s.decoder) add(*s.decoder, lengths.target, across);
  const int64_t length = s.decoder ? lengths.target : lengths.source;
  const int64_t outputs = savings.logit_rows > 0 ? savings.logit_rows : batch * length;
  return static_cast<double>(batch) * bytes +
         std::max(static_cast<double>(batch) * most,
                  logit_bytes(s, outputs, element, savings.frozen_head));
}

namespace {

// Returns the elements of the keys and values that a layer caches for each token.
double cached_in(const model::PagePool::Layer& layer) {
  return static_cast<double>(layer.keys.heads * layer.keys.width +
                             layer.values.heads * layer.values.width);
}

}  // namespace

double cached_per_token(const model::Spec& s) {
  if (!s.decoder) return 0;
  double elements = 0;
  for (const auto& layer : model::page_layout(*s.decoder, DType::f32).layers)
    elements += cached_in(layer);
  return elements;
}

Cached cached(const model::Spec& s, const Lengths& lengths, int64_t batch) {
  if (!s.decoder) return {};
  const model::StackSpec& d = *s.decoder;
  const model::PagePool::Layout layout = model::page_layout(d, DType::f32);
  const model::PagePool::Size size{batch * model::pages_for(lengths.target), batch};
  Cached sum;
  for (int64_t i = 0; i < d.layers; ++i) {
    const model::PagePool::Layer& layer = layout.layer(i);
    const int64_t pages = model::PagePool::pages_of(layer.reach, size);
    const int64_t tokens = std::min(pages * kPageTokens, batch * lengths.target);
    sum.elements += cached_in(layer) * static_cast<double>(tokens);
    sum.states +=
        static_cast<double>(model::kStateSlots * layout.state_bytes(i) + layout.chunk_bytes(i)) *
        static_cast<double>(pages);
  }
  const Widths w = widths_of(s, d);  // for cross-attention
  sum.elements += (w.keys + w.values) * static_cast<double>(batch) *
                  static_cast<double>(d.layers * lengths.source);
  return sum;
}

double step_bytes(const model::Spec& s, const Lengths& lengths, int64_t batch,
                  int64_t step_tokens) {
  if (!s.decoder) return 0;
  const Widths w = widths_of(s, *s.decoder);
  const double tokens = static_cast<double>(std::min(step_tokens, batch * lengths.target));
  const double token =
      4 * w.model + w.queries + w.keys + w.values + 3 * hidden_of(*s.decoder).widest;
  return 4 * (tokens * token + static_cast<double>(s.vocabulary * batch));
}

double program_bytes(const model::Spec& s, const Lengths& lengths, int64_t batch) {
  constexpr double kProgram = 20e6;  // measured, with the scratch memory of the threads
  return kProgram + step_bytes(s, lengths, batch);
}

}  // namespace fovea::train
