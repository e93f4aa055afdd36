#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/random_parameters.h"
#include "transformer/transformer.h"

namespace fovea::test {

// Norms, positions, attention and dropout. put(name, change) adds a variant.
template <class Put>
void put_common(const Put& put) {
  put("pre-norm", [](Spec&, StackSpec&) {});
  put("post-norm", [](Spec&, StackSpec& d) {
    d.placement = {false, false, true};
    d.final_norm = false;
  });
  put("sandwich", [](Spec&, StackSpec& d) { d.placement = {true, true, false}; });
  put("parallel", [](Spec&, StackSpec& d) { d.parallel = true; });
  put("gated rms", [](Spec&, StackSpec& d) {
    d.norm.kind = NormKind::rms;
    d.ffn = {.activation = Activation::silu, .gated = true, .width = 5, .bias = false};
    d.attention.bias = d.attention.output_bias = false;
  });
  put("untied", [](Spec& s, StackSpec& d) {
    s.head.tied = false;
    d.norm.bias = false;
    d.ffn.activation = Activation::gelu;
  });
  put("no position", [](Spec& s, StackSpec& d) {
    s.decoder->position.kind = PositionKind::none;
    d.ffn.activation = Activation::relu;
  });
  put("grouped and windowed", [](Spec&, StackSpec& d) {
    d.attention.kv_heads = 1;
    d.attention.windows = {3};
  });
  put("every norm, heads of their own width", [](Spec&, StackSpec& d) {
    d.placement = {true, true, true};
    d.attention.head_width = 5;
  });
  put("no norm", [](Spec&, StackSpec& d) {
    d.placement = {false, false, false};
    d.final_norm = false;
  });
  put("dropout", [](Spec& s, StackSpec&) { s.dropout = {0.1f, 0.2f, 0.3f}; });
  put("value residual", [](Spec&, StackSpec& d) {
    d.attention.kv_heads = 1;
    d.attention.value_residual = 0.3f;
    d.ffn.activation = Activation::relu_squared;
  });
  put("value residual after a recurrent layer, scores without scale", [](Spec&, StackSpec& d) {
    d.mixers = {MixerKind::gru, MixerKind::attention, MixerKind::attention};
    d.mixers.resize(static_cast<size_t>(std::min<int64_t>(3, d.layers)));
    d.attention.scale = 1;
    d.attention.value_residual = 0.5f;
  });
  put("embeddings only", [](Spec&, StackSpec& d) { d.layers = 0; });
}

// Mixers other than plain attention.
template <class Put>
void put_mixers(const Put& put) {
  put("lstm, gru and attention", [](Spec&, StackSpec& d) {
    d.mixers = {MixerKind::lstm, MixerKind::attention, MixerKind::gru};
    d.mixers.resize(static_cast<size_t>(std::min<int64_t>(3, d.layers)));
    d.recurrence.width = 5;
  });
  put("latent attention", [](Spec&, StackSpec& d) {
    d.mixers = {MixerKind::latent};
    d.latent = {.width = 7, .query_width = 6};
    d.attention.value_width = 5;
    d.position.kind = PositionKind::rotary;
  });
  put("latent attention and attention, windowed, without rotary positions",
      [](Spec&, StackSpec& d) {
        d.mixers = {MixerKind::attention, MixerKind::latent};
        d.mixers.resize(static_cast<size_t>(std::min<int64_t>(2, d.layers)));
        d.latent.width = 20;
        d.attention.windows = {3};
        d.norm.kind = NormKind::rms;
      });
  put("values of another width", [](Spec&, StackSpec& d) {
    d.attention.kv_heads = 1;
    d.attention.value_width = 7;
  });
  put("rnn without residuals and feed-forward layers", [](Spec&, StackSpec& d) {
    d.mixers = {MixerKind::rnn};
    d.residual = d.ffn.present = false;
  });
}

// Experts, scaled residuals and DyT.
template <class Put>
void put_experts_and_scales(const Put& put) {
  put("shared experts with a gate", [](Spec&, StackSpec& d) {
    d.ffn.gated = true;
    d.ffn.width = 5;
    d.ffn.experts = {.count = 3, .shared = 1, .shared_width = 7, .shared_gate = true};
  });
  put("sigmoid routing with a selection bias and groups, shared experts", [](Spec&, StackSpec& d) {
    d.ffn.width = 5;
    d.ffn.experts = {.count = 6,
                     .score = ExpertScore::sigmoid,
                     .selection_bias = true,
                     .scale = 1.5f,
                     .groups = 3,
                     .groups_chosen = 2,
                     .shared = 2};
  });
  put("deepnorm", [](Spec&, StackSpec& d) {
    d.placement = {false, false, true};
    d.final_norm = false;
    d.residual_scale = 1.7f;
    d.init_scale = 0.4f;
  });
  put("layer scale", [](Spec&, StackSpec& d) { d.layer_scale = 0.3f; });
  put("dyt on every place, heads and latents", [](Spec&, StackSpec& d) {
    d.norm.kind = NormKind::dyt;
    d.placement = {true, true, true};
    d.embedding_norm = true;
    d.attention.norm = QueryKeyNorm::head;
    d.mixers = {MixerKind::attention, MixerKind::latent};
    d.mixers.resize(static_cast<size_t>(std::min<int64_t>(2, d.layers)));
    d.latent = {.width = 7, .query_width = 6};
  });
}

// Returns named variants of `base`, which has a decoder: different norms, FFNs, experts, positions,
// attention and dropout.
inline std::vector<std::pair<std::string, Spec>> mixtures(const Spec& base) {
  std::vector<std::pair<std::string, Spec>> all;
  const auto put = [&](const char* name, auto&& change) {
    Spec s = base;
    change(s, *s.decoder);
    all.emplace_back(name, validated(s));
  };
  put_common(put);
  put_mixers(put);
  put_experts_and_scales(put);
  return all;
}

inline Transformer made(const Spec& spec, uint64_t seed = 1) {
  Transformer model(spec);
  randomise(model, seed);
  return model;
}

inline Tensor some_ids(Shape shape, int64_t vocabulary, uint64_t seed = 5) {
  Tensor ids = empty(std::move(shape), DType::i32);
  Random random(seed, Stream::init);
  for (int64_t i = 0; i < ids.size(); ++i) {
    ids.data_as<int32_t>()[i] =
        static_cast<int32_t>(random.word() % static_cast<uint32_t>(vocabulary));
  }
  return ids;
}

inline Pass causal_pass(DType compute = DType::f32) {
  Pass pass;
  pass.compute = compute;
  pass.mask.causal = true;
  return pass;
}

}  // namespace fovea::test
