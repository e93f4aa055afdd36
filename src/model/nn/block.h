#pragma once

#include <memory>
#include <optional>

#include "nn/ffn.h"
#include "nn/mixer.h"
#include "nn/norm.h"

namespace fovea::model {

// One layer: its mixer and its feed-forward layer on the residual stream, and between them
// cross-attention if a decoder attends to an encoder's output.
struct Block {
  Mixer mixer;
  std::optional<Attention> cross;
  std::optional<FeedForward> ffn;
  Norms attention_norm, cross_norm, ffn_norm;
  Parameter attention_scale, ffn_scale;  // [C], factors of the outputs (LayerScale)
  int64_t layer = 0;
  bool parallel = false, residual = true;
  float residual_scale = 1, sublayer_scale = 1;
  Dropout attention_dropout, cross_dropout, ffn_dropout;  // dropout of the sublayers' outputs

  Block() = default;
  // `first_substream` is the number of the stack's first substream of dropout (see pass.h).
  Block(const StackSpec& spec, const DropoutSpec& dropout, int64_t width, int64_t layer,
        bool with_cross, uint32_t first_substream);

  // x [B, T, C], f32 -> [B, T, C], f32
  Tensor operator()(const Tensor& x, const LayerPass& pass) const;
  // The same; if the pass recomputes() the layer, the backward pass computes the block again.
  static Tensor recomputed(const std::shared_ptr<const Block>& block, const Tensor& x,
                           const LayerPass& pass);
  // Returns the block of another layer with the same weights.
  Block of_layer(int64_t other) const;
  // Returns the norm of the input of the feed-forward layer.
  const Norm& ffn_input_norm() const {
    return parallel && !ffn_norm.input.present() ? attention_norm.input : ffn_norm.input;
  }
  // Returns y times sublayer_scale and, if present, the factors [C].   y [..., C] -> [..., C]
  Tensor scaled(const Tensor& y, const Parameter& factors) const;
  // Returns the output of the mixer, times its factors, plus `sum_with`, if it is not empty.
  // x [B, T, C], normalised -> [B, T, C]
  Tensor mix(const Tensor& x, const LayerPass& pass, const Tensor& sum_with = {}) const;
  // Returns the output of the feed-forward layer, times its factors, plus `sum_with`.
  Tensor feed(const Tensor& x, const LayerPass& pass, const Tensor& sum_with = {}) const;
  // Returns residual_scale * x + y, of x's dtype; y if the block has no residual connections.
  Tensor added(const Tensor& x, const Tensor& y) const;

  // Returns the mixer if it is of type M; null otherwise.
  template <class M>
  const M* mixer_as() const {
    return std::get_if<M>(&mixer);
  }
  template <class M>
  M* mixer_as() {
    return std::get_if<M>(&mixer);
  }
  // Whether the mixer has attention weights.
  bool attends() const {
    return std::visit([](const auto& m) { return m.kAttends; }, mixer);
  }
  // Returns the matrix of the outputs of the mixer.
  const Linear& mixer_output() const {
    return std::visit([](const auto& m) -> const Linear& { return m.output; }, mixer);
  }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    attention_norm.each(f, name + ".norm.attention");
    visit(f, name + ".scale.attention", attention_scale);
    std::visit([&](auto& m) { m.each(f, name + "." + m.kName); }, mixer);
    cross_norm.each(f, name + ".norm.cross");
    if (cross) cross->each(f, name + ".cross");
    ffn_norm.each(f, name + ".norm.ffn");
    visit(f, name + ".scale.ffn", ffn_scale);
    if (ffn) ffn->each(f, name + ".ffn");
  }
};

}  // namespace fovea::model
