#include "plan/memory.h"

#include <algorithm>

namespace fovea {
namespace {

struct Widths {  // widths of the parts of a token's state in a layer
  double model, queries, keys, heads;
};

Widths widths_of(const Spec& s, const StackSpec& stack) {
  const AttentionSpec& a = stack.attention;
  return {static_cast<double>(s.width), static_cast<double>(a.heads * a.head_width),
          static_cast<double>(a.kv_heads * a.head_width), static_cast<double>(a.heads)};
}

// Hidden elements per token in the feed-forward layers: the sum over all layers, and the number in
// the widest layer.
struct Hidden {
  double all = 0, widest = 0;
};

Hidden hidden_of(const StackSpec& stack) {
  const ExpertsSpec& e = stack.ffn.experts;
  const auto dense = static_cast<double>(stack.ffn.width);
  const auto layers = static_cast<double>(stack.layers);
  if (e.count == 0) return {layers * dense, dense};
  const auto chosen = static_cast<double>(e.chosen * e.width);
  const auto without = static_cast<double>(e.dense_layers.size());
  return {without * dense + (layers - without) * chosen, std::max(without > 0 ? dense : 0, chosen)};
}

// Returns the bytes kept for the backward pass of one sequence. Per layer and token: two states of
// the residual stream and the statistics of their norms; query, key and value; the output of
// attention and the sum of its softmax; the hidden elements of the feed-forward layer before and
// after the activation. Norms are computed again.
double kept(const Spec& s, const StackSpec& stack, double tokens, double element) {
  const Widths w = widths_of(s, stack);
  const double attention = 8 * w.model + 16 + element * (2 * w.queries + 2 * w.keys) + 4 * w.heads;
  const double ffn = element * hidden_of(stack).all * (stack.ffn.gated ? 4 : 2);
  return tokens * (static_cast<double>(stack.layers) * attention + ffn + 4 * w.model);
}

// Returns the bytes that cross-attention keeps for the backward pass of one sequence.
double kept_across(const Spec& s, const Lengths& lengths, double element) {
  const Widths w = widths_of(s, *s.decoder);
  const double of_target = 4 * w.model + 8 + element * 2 * w.queries + 4 * w.heads;
  return static_cast<double>(s.decoder->layers) *
         (static_cast<double>(lengths.target) * of_target +
          static_cast<double>(lengths.source) * element * 2 * w.keys);
}

// Returns the bytes of temporaries in the backward pass of the widest feed-forward layer.
double passing(const Spec& s, const StackSpec& stack, double tokens, double element) {
  return tokens * (3 * element * hidden_of(stack).widest + 12 * static_cast<double>(s.width));
}

}  // namespace

double activation_bytes(const Spec& s, const Lengths& lengths, int64_t batch, double element) {
  double bytes = 0, most = 0;
  const auto add = [&](const StackSpec& stack, int64_t length) {
    const auto tokens = static_cast<double>(length);
    bytes += kept(s, stack, tokens, element);
    most = std::max(most, passing(s, stack, tokens, element));
  };
  if (s.encoder) add(*s.encoder, lengths.source);
  if (s.decoder) add(*s.decoder, lengths.target);
  if (s.encoder && s.decoder) bytes += kept_across(s, lengths, element);
  if (s.head.kind == HeadKind::language_model) {  // the logits and their gradients
    const int64_t outputs = s.decoder ? lengths.target : lengths.source;
    most = std::max(most, 8 * static_cast<double>(s.vocabulary * outputs));
  }
  return static_cast<double>(batch) * (bytes + most);
}

double cached_per_token(const Spec& s) {
  if (!s.decoder) return 0;
  return 2 * widths_of(s, *s.decoder).keys * static_cast<double>(s.decoder->layers);
}

double cached(const Spec& s, const Lengths& lengths) {
  if (!s.decoder) return 0;
  const StackSpec& d = *s.decoder;
  double tokens =
      static_cast<double>(d.layers * (d.attention.windows.empty() ? lengths.target : 0));
  for (const int64_t window : d.attention.windows) {
    const int64_t most = window == 0 ? lengths.target : window + d.attention.global;
    tokens += static_cast<double>(std::min(most, lengths.target));
  }
  tokens += static_cast<double>(d.layers * lengths.source);  // for cross-attention
  return 2 * widths_of(s, d).keys * tokens;
}

}  // namespace fovea
