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
  put("pre-norm", [](model::Spec&, model::StackSpec&) {});
  put("post-norm", [](model::Spec&, model::StackSpec& d) {
    d.placement = {false, false, true};
    d.final_norm = false;
  });
  put("sandwich", [](model::Spec&, model::StackSpec& d) { d.placement = {true, true, false}; });
  put("parallel", [](model::Spec&, model::StackSpec& d) { d.parallel = true; });
  put("gated rms", [](model::Spec&, model::StackSpec& d) {
    d.norm.kind = model::NormKind::rms;
    d.ffn = {.activation = Activation::silu, .gated = true, .width = 5, .bias = false};
    d.attention.bias = d.attention.output_bias = false;
  });
  put("untied", [](model::Spec& s, model::StackSpec& d) {
    s.head.tied = false;
    d.norm.bias = false;
    d.ffn.activation = Activation::gelu;
  });
  put("no position", [](model::Spec& s, model::StackSpec& d) {
    s.decoder->position.kind = model::PositionKind::none;
    d.ffn.activation = Activation::relu;
  });
  put("grouped and windowed", [](model::Spec&, model::StackSpec& d) {
    d.attention.kv_heads = 1;
    d.attention.windows = {3};
  });
  put("every norm, heads of their own width", [](model::Spec&, model::StackSpec& d) {
    d.placement = {true, true, true};
    d.attention.head_width = 5;
  });
  put("no norm", [](model::Spec&, model::StackSpec& d) {
    d.placement = {false, false, false};
    d.final_norm = false;
  });
  put("dropout", [](model::Spec& s, model::StackSpec&) { s.dropout = {0.1f, 0.2f, 0.3f}; });
  put("value residual", [](model::Spec&, model::StackSpec& d) {
    d.attention.kv_heads = 1;
    d.attention.value_residual = 0.3f;
    d.ffn.activation = Activation::relu_squared;
  });
  put("value residual after a recurrent layer, scores without scale", [](model::Spec&,
                                                                         model::StackSpec& d) {
    d.mixers = {model::MixerKind::gru, model::MixerKind::attention, model::MixerKind::attention};
    d.mixers.resize(static_cast<size_t>(std::min<int64_t>(3, d.layers)));
    d.attention.scale = 1;
    d.attention.value_residual = 0.5f;
  });
  put("embeddings only", [](model::Spec&, model::StackSpec& d) { d.layers = 0; });
}

// Mixers other than plain attention.
template <class Put>
void put_mixers(const Put& put) {
  put("lstm, gru and attention", [](model::Spec&, model::StackSpec& d) {
    d.mixers = {model::MixerKind::lstm, model::MixerKind::attention, model::MixerKind::gru};
    d.mixers.resize(static_cast<size_t>(std::min<int64_t>(3, d.layers)));
    d.recurrence.width = 5;
  });
  put("latent attention", [](model::Spec&, model::StackSpec& d) {
    d.mixers = {model::MixerKind::latent};
    d.latent = {.width = 7, .query_width = 6};
    d.attention.value_width = 5;
    d.position.kind = model::PositionKind::rotary;
  });
  put("latent attention and attention, windowed, without rotary positions",
      [](model::Spec&, model::StackSpec& d) {
        d.mixers = {model::MixerKind::attention, model::MixerKind::latent};
        d.mixers.resize(static_cast<size_t>(std::min<int64_t>(2, d.layers)));
        d.latent.width = 20;
        d.attention.windows = {3};
        d.norm.kind = model::NormKind::rms;
      });
  put("values of another width", [](model::Spec&, model::StackSpec& d) {
    d.attention.kv_heads = 1;
    d.attention.value_width = 7;
  });
  put("rnn without residuals and feed-forward layers", [](model::Spec&, model::StackSpec& d) {
    d.mixers = {model::MixerKind::rnn};
    d.residual = d.ffn.present = false;
  });
}

// Layers with linear attention and convolutions.
template <class Put>
void put_linear_mixers(const Put& put) {
  put("gated delta rule and gated attention", [](model::Spec&, model::StackSpec& d) {
    d.mixers = {model::MixerKind::gated_delta, model::MixerKind::attention};
    d.mixers.resize(static_cast<size_t>(std::min<int64_t>(2, d.layers)));
    d.delta = {.heads = 4, .key_heads = 2, .key_width = 5, .value_width = 3};
    d.attention.gated = true;
    d.norm.kind = model::NormKind::rms;
  });
  put("gated delta rule with larger updates and a short convolution",
      [](model::Spec&, model::StackSpec& d) {
        d.mixers = {model::MixerKind::gated_delta};
        d.delta = {.convolution = 1, .doubled = true};
      });
  put("gated convolutions and attention", [](model::Spec&, model::StackSpec& d) {
    d.mixers = {model::MixerKind::convolution, model::MixerKind::attention};
    d.mixers.resize(static_cast<size_t>(std::min<int64_t>(2, d.layers)));
    d.convolution = {.width = 20, .tokens = 3, .bias = true};
  });
  put("state spaces and attention with sinks", [](model::Spec&, model::StackSpec& d) {
    d.mixers = {model::MixerKind::state_space, model::MixerKind::attention};
    d.mixers.resize(static_cast<size_t>(std::min<int64_t>(2, d.layers)));
    d.state_space = {.heads = 4, .head_width = 3, .groups = 2, .state_width = 5};
    d.attention.sinks = true;
    d.attention.windows = {3};
  });
  put("state spaces with a norm of each group before the gate, bounded steps",
      [](model::Spec&, model::StackSpec& d) {
        d.mixers = {model::MixerKind::state_space};
        d.state_space = {.heads = 6,
                         .head_width = 2,
                         .state_width = 3,
                         .convolution = 2,
                         .convolution_bias = false,
                         .norm_first = true,
                         .norm_groups = 3,
                         .least_step = 0.01f,
                         .most_step = 0.5f};
      });
}

// Parts that only some families of checkpoints have.
template <class Put>
void put_parts_of_families(const Put& put) {
  put("parallel behind one norm, scaled outputs and logits",
      [](model::Spec& s, model::StackSpec& d) {
        d.parallel = d.one_norm = true;
        d.norm.bias = false;
        d.sublayer_scale = 0.6f;
        s.embedding_scale = 1.5f;
        s.head.scale = 0.3f;
      });
  put("norms without gains, of heads after their rotation", [](model::Spec&, model::StackSpec& d) {
    d.position.kind = model::PositionKind::rotary;
    d.attention.head_width = 4;
    d.norm = {.kind = model::NormKind::rms, .gain = false};
    d.embedding_norm = true;
    d.attention.norm = model::QueryKeyNorm::head;
    d.attention.norm_rotated = true;
  });
  put("a layer without positions, outputs scaled before their norms",
      [](model::Spec&, model::StackSpec& d) {
        d.position.kind = model::PositionKind::rotary;
        d.attention.head_width = 4;
        d.position.rotary.neighbours = true;
        d.position.rotary.unrotated = {0};
        d.placement = {false, true, false};
        d.sublayer_scale = 1.4f;
      });
  put("queries that grow with their position", [](model::Spec&, model::StackSpec& d) {
    d.position.kind = model::PositionKind::rotary;
    d.attention.head_width = 4;
    d.position.rotary.query_growth = 0.4f;
    d.position.rotary.original_context = 2;
  });
  put("gains of each head, norms inside the sublayers", [](model::Spec&, model::StackSpec& d) {
    d.attention.norm = model::QueryKeyNorm::each;
    d.attention.kv_heads = 1;
    d.attention.heads_norm = d.ffn.inner_norm = true;
    d.ffn.gated = true;
  });
  put("xielu, a norm before the positions", [](model::Spec&, model::StackSpec& d) {
    d.ffn.xielu = true;
    d.ffn.inner_norm = true;
    d.embedding_norm = d.norm_before_positions = true;
  });
  put("a position bias of each layer", [](model::Spec&, model::StackSpec& d) {
    d.position = {.kind = model::PositionKind::none,
                  .bias = model::DistanceBias::relative,
                  .buckets = 8,
                  .distance = 12,
                  .bias_by_layer = true};
  });
}

// Experts, scaled residuals and DyT.
template <class Put>
void put_experts_and_scales(const Put& put) {
  put("shared experts with a gate", [](model::Spec&, model::StackSpec& d) {
    d.ffn.gated = true;
    d.ffn.width = 5;
    d.ffn.experts = {.count = 3, .shared = 1, .shared_width = 7, .shared_gate = true};
  });
  put("sigmoid routing with a selection bias and groups, shared experts",
      [](model::Spec&, model::StackSpec& d) {
        d.ffn.width = 5;
        d.ffn.experts = {.count = 6,
                         .score = model::ExpertScore::sigmoid,
                         .selection_bias = true,
                         .scale = 1.5f,
                         .groups = 3,
                         .groups_chosen = 2,
                         .shared = 2};
      });
  put("experts with clipped gates and a bias of the router", [](model::Spec&, model::StackSpec& d) {
    d.ffn.gated = true;
    d.ffn.width = 5;
    d.ffn.activation = Activation::quick_gelu;
    d.ffn.gate_limit = 0.1f;
    d.ffn.up_offset = 1;
    d.ffn.experts = {.count = 3, .router_bias = true};
  });
  put("a sparse mixer", [](model::Spec&, model::StackSpec& d) {
    d.ffn.width = 5;
    d.ffn.experts = {
        .count = 4, .score = model::ExpertScore::sparse_mixer, .tolerance = 0.4f, .scale = 1.5f};
  });
  put("layers with the same weights", [](model::Spec& s, model::StackSpec& d) {
    d.layer_groups = 1;
    s.dropout.residual = 0.2f;
  });
  put("experts with a bias of their sum, gated without inner biases",
      [](model::Spec&, model::StackSpec& d) {
        d.ffn.gated = true;
        d.ffn.width = 5;
        d.ffn.inner_bias = false;
        d.ffn.experts = {.count = 3, .normalise = false, .dense_layers = {0}, .sum_bias = true};
      });
  put("deepnorm", [](model::Spec&, model::StackSpec& d) {
    d.placement = {false, false, true};
    d.final_norm = false;
    d.residual_scale = 1.7f;
    d.init_scale = 0.4f;
  });
  put("layer scale", [](model::Spec&, model::StackSpec& d) { d.layer_scale = 0.3f; });
  put("dyt on every place, heads and latents", [](model::Spec&, model::StackSpec& d) {
    d.norm.kind = model::NormKind::dyt;
    d.placement = {true, true, true};
    d.embedding_norm = true;
    d.attention.norm = model::QueryKeyNorm::head;
    d.mixers = {model::MixerKind::attention, model::MixerKind::latent};
    d.mixers.resize(static_cast<size_t>(std::min<int64_t>(2, d.layers)));
    d.latent = {.width = 7, .query_width = 6};
  });
}

// Returns named variants of `base`, which has a decoder: different norms, FFNs, experts, positions,
// attention and dropout.
inline std::vector<std::pair<std::string, model::Spec>> mixtures(const model::Spec& base) {
  std::vector<std::pair<std::string, model::Spec>> all;
  const auto put = [&](const char* name, auto&& change) {
    model::Spec s = base;
    change(s, *s.decoder);
    all.emplace_back(name, model::validated(s));
  };
  put_common(put);
  put_mixers(put);
  put_linear_mixers(put);
  put_experts_and_scales(put);
  put_parts_of_families(put);
  return all;
}

inline model::Transformer made(const model::Spec& spec, uint64_t seed = 1) {
  model::Transformer model(spec);
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

inline model::Pass causal_pass(DType compute = DType::f32) {
  model::Pass pass;
  pass.compute = compute;
  pass.mask.causal = true;
  return pass;
}

}  // namespace fovea::test
