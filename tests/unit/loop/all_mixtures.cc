#include "unit/loop/all_mixtures.h"

#include <utility>

#include "support/small_spec.h"

namespace fovea::test {

using namespace model;

namespace {

constexpr SmallSize kSize{.vocabulary = 7, .context = 12, .width = 8};

Spec narrow(Spec spec) {
  for (auto* stack : {&spec.encoder, &spec.decoder})
    if (*stack) (*stack)->ffn.width = 6;
  return spec;
}

Spec decoder() { return narrow(small_decoder(kSize)); }
Spec encoder() { return narrow(small_encoder(kSize)); }
Spec both() { return narrow(small_encoder_decoder(kSize)); }

class List {
 public:
  template <class Change>
  void decoder_with(const char* name, Change&& change) {
    Spec s = decoder();
    change(s, *s.decoder);
    put("decoder, ", name, s);
  }
  template <class Change>
  void encoder_with(const char* name, Change&& change) {
    Spec s = encoder();
    change(s, *s.encoder);
    put("encoder, ", name, s);
  }
  template <class Change>
  void both_with(const char* name, Change&& change) {
    Spec s = both();
    change(s, *s.encoder, *s.decoder);
    put("both, ", name, s);
  }
  std::vector<Mixture> all;

 private:
  void put(const char* shape, const char* name, const Spec& spec) {
    all.push_back({std::string(shape) + name, validated(spec)});
  }
};

void add_linear_mixers(List& list) {
  list.decoder_with("gated delta rule", [](Spec&, StackSpec& d) {
    d.mixers = {MixerKind::gated_delta, MixerKind::attention};
    d.delta = {.heads = 4, .key_heads = 2, .key_width = 3, .value_width = 5, .convolution = 3};
  });
  list.decoder_with("input norms of the gated delta rule, output norms of attention",
                    [](Spec&, StackSpec& d) {
                      d.mixers = {MixerKind::gated_delta, MixerKind::attention};
                      d.placement = {false, true, false};
                      d.recurrent_pre_norm = true;
                    });
  list.decoder_with("gated convolution", [](Spec&, StackSpec& d) {
    d.mixers = {MixerKind::convolution, MixerKind::attention};
    d.convolution = {.width = 7, .tokens = 4, .bias = true};
  });
  list.decoder_with("state space", [](Spec&, StackSpec& d) {
    d.mixers = {MixerKind::state_space, MixerKind::attention};
    d.state_space = {.heads = 4, .head_width = 3, .groups = 2, .state_width = 5, .convolution = 3};
  });
  list.decoder_with("state space, bounded steps, a norm of each part before the gate",
                    [](Spec&, StackSpec& d) {
                      d.mixers = {MixerKind::state_space};
                      d.state_space = {.heads = 4,
                                       .head_width = 3,
                                       .state_width = 5,
                                       .convolution_bias = false,
                                       .norm_first = true,
                                       .norm_groups = 2,
                                       .least_step = 0.1f,
                                       .most_step = 0.6f};
                    });
}

void add_attentions(List& list) {
  list.decoder_with("plain", [](Spec&, StackSpec&) {});
  list.decoder_with("grouped", [](Spec&, StackSpec& d) {
    d.attention.heads = 4;
    d.attention.kv_heads = 2;
  });
  list.decoder_with("gated heads", [](Spec&, StackSpec& d) { d.attention.gated = true; });
  list.decoder_with("sinks", [](Spec&, StackSpec& d) {
    d.attention.sinks = true;
    d.attention.heads = 4;
    d.attention.kv_heads = 2;
    d.attention.windows = {3};
  });
  list.decoder_with("one key-value head", [](Spec&, StackSpec& d) { d.attention.kv_heads = 1; });
  list.decoder_with("wide heads", [](Spec&, StackSpec& d) { d.attention.head_width = 5; });
  list.decoder_with("window", [](Spec&, StackSpec& d) { d.attention.windows = {3}; });
  list.decoder_with("window in one layer",
                    [](Spec&, StackSpec& d) { d.attention.windows = {0, 2}; });
  list.decoder_with("window and global tokens", [](Spec&, StackSpec& d) {
    d.attention.windows = {3};
    d.attention.global = 2;
  });
  list.decoder_with("no biases", [](Spec&, StackSpec& d) {
    d.attention.bias = d.attention.output_bias = d.ffn.bias = d.norm.bias = false;
  });
  list.decoder_with("no key bias", [](Spec&, StackSpec& d) { d.attention.key_bias = false; });
  list.decoder_with("output bias alone", [](Spec&, StackSpec& d) { d.attention.bias = false; });
  list.decoder_with("scale and softcap", [](Spec&, StackSpec& d) {
    d.attention.scale = 0.3f;
    d.attention.softcap = 1.5f;
  });
  list.decoder_with("norm of each head",
                    [](Spec&, StackSpec& d) { d.attention.norm = QueryKeyNorm::head; });
  list.decoder_with("norm of all heads, grouped", [](Spec&, StackSpec& d) {
    d.attention.norm = QueryKeyNorm::all;
    d.attention.kv_heads = 1;
    d.norm.kind = NormKind::rms;
  });
  list.decoder_with("gains of each head, norms of the heads' outputs and the hidden layer",
                    [](Spec&, StackSpec& d) {
                      d.attention.norm = QueryKeyNorm::each;
                      d.attention.kv_heads = 1;
                      d.attention.heads_norm = d.ffn.inner_norm = true;
                    });
  list.encoder_with("window on both sides", [](Spec&, StackSpec& e) { e.attention.windows = {2}; });
  list.encoder_with("window and global tokens", [](Spec&, StackSpec& e) {
    e.attention.windows = {2, 3};
    e.attention.global = 1;
  });
  list.encoder_with("local and global layers", [](Spec&, StackSpec& e) {
    e.attention.windows = {2, 0};
    e.position.kind = PositionKind::rotary;
    e.position.rotary.local_theta = 50;
  });
  list.encoder_with("softcap", [](Spec&, StackSpec& e) { e.attention.softcap = 2; });
}

void add_disentangled(List& list) {
  list.encoder_with("disentangled", [](Spec&, StackSpec& e) {
    e.position.kind = PositionKind::none;
    e.position.bias = DistanceBias::disentangled;
    e.position.buckets = 8;
    e.position.distance = 6;
    e.position.disentangled.norm = true;
    e.attention.scale = 0.3f;
  });
  list.encoder_with("disentangled and learned, layers of distances", [](Spec&, StackSpec& e) {
    e.position.bias = DistanceBias::disentangled;
    e.position.buckets = 8;
    e.position.distance = 4;
    e.position.disentangled.shared = false;
    e.attention.key_bias = false;
  });
  list.encoder_with("disentangled, content to position", [](Spec& s, StackSpec& e) {
    e.position.bias = DistanceBias::disentangled;
    e.position.buckets = 6;
    e.position.distance = 9;
    e.position.disentangled.position_to_content = false;
    s.dropout = {0.2f, 0.1f, 0.1f};
  });
  list.encoder_with("disentangled, position to content, windowed", [](Spec&, StackSpec& e) {
    e.position.bias = DistanceBias::disentangled;
    e.position.disentangled.shared = e.position.disentangled.content_to_position = false;
    e.attention.windows = {3};
  });
}

void add_positions(List& list) {
  list.decoder_with("no position",
                    [](Spec&, StackSpec& d) { d.position.kind = PositionKind::none; });
  list.decoder_with("learned from row 2", [](Spec&, StackSpec& d) { d.position.offset = 2; });
  for (const auto& [name, waves] : {std::pair{"waves", Waves::neighbours},
                                    {"sinusoids in halves", Waves::halves},
                                    {"interleaved sinusoids", Waves::spread}}) {
    list.decoder_with(name, [&, &chosen = waves](Spec&, StackSpec& d) {
      d.position.kind = PositionKind::sinusoidal;
      d.position.waves = chosen;
    });
  }
  list.decoder_with("stored waves", [](Spec&, StackSpec& d) {
    d.position.kind = PositionKind::sinusoidal;
    d.position.stored = true;
    d.position.offset = 2;
  });
  list.decoder_with("alibi", [](Spec&, StackSpec& d) {
    d.position.kind = PositionKind::none;
    d.position.bias = DistanceBias::alibi;
    d.attention.heads = 4;
    d.attention.kv_heads = 2;
  });
  list.decoder_with("relative", [](Spec&, StackSpec& d) {
    d.position.kind = PositionKind::none;
    d.position.bias = DistanceBias::relative;
    d.position.buckets = 4;
    d.position.distance = 6;
  });
  list.encoder_with("alibi", [](Spec&, StackSpec& e) {
    e.position.kind = PositionKind::none;
    e.position.bias = DistanceBias::alibi;
  });
  list.encoder_with("relative and learned", [](Spec&, StackSpec& e) {
    e.position.bias = DistanceBias::relative;
    e.position.buckets = 8;
    e.position.distance = 6;
  });
}

void add_rotations(List& list) {
  const auto rotary = [&](const char* name, auto change) {
    list.decoder_with(name, [&](Spec&, StackSpec& d) {
      d.position.kind = PositionKind::rotary;
      d.position.rotary.theta = 100;
      change(d.position.rotary);
    });
  };
  const auto scaled = [&](const char* name, RotaryScaling scaling, auto change) {
    rotary(name, [&](RotarySpec& r) {
      r.scaling = scaling;
      r.factor = 4;
      r.original_context = 4;
      change(r);
    });
  };
  rotary("rotary", [](RotarySpec&) {});
  rotary("rotary, half of each head", [](RotarySpec& r) { r.share = 0.5f; });
  rotary("rotary neighbours", [](RotarySpec& r) { r.neighbours = true; });
  scaled("rotary, linear", RotaryScaling::linear, [](RotarySpec&) {});
  scaled("rotary, dynamic", RotaryScaling::dynamic, [](RotarySpec& r) { r.original_context = 16; });
  scaled("rotary, llama3", RotaryScaling::llama3, [](RotarySpec& r) {
    r.low_frequency = 0.2f;
    r.high_frequency = 0.9f;
  });
  scaled("rotary, yarn", RotaryScaling::yarn, [](RotarySpec& r) {
    r.fast = 0.9f;
    r.slow = 0.1f;
  });
  scaled("rotary, yarn with a factor", RotaryScaling::yarn,
         [](RotarySpec& r) { r.attention_factor = 0.7f; });
  // Whether a text is longer than the original context selects the short or the long factors. Each
  // of these models uses the same factors for all lengths that the tests compare.
  scaled("rotary, longrope, short", RotaryScaling::longrope, [](RotarySpec& r) {
    r.original_context = 12;
    r.short_factors = {1.5f, 2}, r.long_factors = {3, 4};
  });
  scaled("rotary, longrope, long", RotaryScaling::longrope, [](RotarySpec& r) {
    r.original_context = 1;  // short factors at length 1 only, where the token is not rotated
    r.attention_factor = 1.2f;
    r.short_factors = {1.5f, 2}, r.long_factors = {3, 4};
  });
}

void add_norms(List& list) {
  list.decoder_with("rms", [](Spec&, StackSpec& d) { d.norm.kind = NormKind::rms; });
  list.decoder_with("rms, unit offset", [](Spec&, StackSpec& d) {
    d.norm.kind = NormKind::rms;
    d.norm.unit_offset = true;
    d.norm.epsilon = 1e-3f;
  });
  list.decoder_with("norms without bias", [](Spec&, StackSpec& d) { d.norm.bias = false; });
  list.decoder_with("epsilon outside", [](Spec&, StackSpec& d) {
    d.norm.epsilon_outside = true;
    d.norm.epsilon = 0.1f;
  });
  list.decoder_with("norm on the embeddings, none before the first layer", [](Spec&, StackSpec& d) {
    d.embedding_norm = true;
    d.first_norm = false;
  });
  list.decoder_with("no norm", [](Spec&, StackSpec& d) {
    d.placement = {false, false, false};
    d.final_norm = false;
  });
  list.decoder_with("parallel", [](Spec&, StackSpec& d) { d.parallel = true; });
  list.decoder_with("parallel, scaled residual", [](Spec&, StackSpec& d) {
    d.parallel = true;
    d.residual_scale = 0.5f;
  });
  list.decoder_with("dyt", [](Spec& s, StackSpec& d) {
    d.norm.kind = NormKind::dyt;
    d.attention.norm = QueryKeyNorm::all;
    s.head.transform = s.head.transform_norm = true;
  });
  list.decoder_with("dyt without bias, unit offset", [](Spec&, StackSpec& d) {
    d.norm = {.kind = NormKind::dyt, .bias = false, .unit_offset = true, .alpha = 0.8f};
  });
  list.encoder_with("deepnorm", [](Spec&, StackSpec& e) {
    e.placement = {false, false, true};
    e.residual_scale = 1.4f;
    e.init_scale = 0.5f;
  });
  list.encoder_with("post-norm", [](Spec&, StackSpec& e) {
    e.placement = {false, false, true};
    e.final_norm = false;
    e.embedding_norm = true;
  });
  list.encoder_with("sandwich", [](Spec&, StackSpec& e) { e.placement = {true, true, false}; });
  list.encoder_with("embeddings of another width", [](Spec& s, StackSpec& e) {
    s.embedding_width = s.width / 2;
    s.head.transform = s.head.transform_norm = true;
    e.embedding_norm = true;
  });
  list.encoder_with("norms on outputs only",
                    [](Spec&, StackSpec& e) { e.placement = {false, true, false}; });
  list.encoder_with("every norm", [](Spec&, StackSpec& e) { e.placement = {true, true, true}; });
  list.encoder_with("norms on inputs and on the sum",
                    [](Spec&, StackSpec& e) { e.placement = {true, false, true}; });
  list.encoder_with("norms on outputs and the sum",
                    [](Spec&, StackSpec& e) { e.placement = {false, true, true}; });
}

void add_feed_forwards(List& list) {
  for (const auto& [name, kind] : {std::pair{"relu", Activation::relu},
                                   {"gelu", Activation::gelu},
                                   {"silu", Activation::silu},
                                   {"tanh", Activation::tanh},
                                   {"quick gelu", Activation::quick_gelu},
                                   {"relu squared", Activation::relu_squared},
                                   {"sigmoid", Activation::sigmoid}}) {
    list.decoder_with(name,
                      [&, &chosen = kind](Spec&, StackSpec& d) { d.ffn.activation = chosen; });
  }
  list.decoder_with("gated", [](Spec&, StackSpec& d) { d.ffn.gated = true; });
  list.decoder_with("gated silu without bias", [](Spec&, StackSpec& d) {
    d.ffn.gated = true;
    d.ffn.bias = false;
    d.ffn.activation = Activation::silu;
  });
  list.encoder_with("gated with a bias of the output alone", [](Spec&, StackSpec& e) {
    e.ffn.gated = true;
    e.ffn.inner_bias = false;
  });
}

void add_experts(List& list) {
  list.decoder_with("clipped gates, a bias of the router", [](Spec&, StackSpec& d) {
    d.ffn.gated = true;
    d.ffn.gate_limit = 0.3f;
    d.ffn.up_offset = 0.5f;
    d.ffn.experts = {.count = 3, .chosen = 2, .router_bias = true};
  });
  list.decoder_with("experts",
                    [](Spec&, StackSpec& d) { d.ffn.experts = {.count = 3, .chosen = 2}; });
  list.decoder_with("gated experts after a dense layer", [](Spec&, StackSpec& d) {
    d.ffn.gated = true;
    d.ffn.experts = {.count = 4,
                     .chosen = 2,
                     .width = 5,
                     .normalise = false,
                     .balance = 0.1f,
                     .dense_layers = {0}};
  });
  list.decoder_with("shared experts", [](Spec&, StackSpec& d) {
    d.ffn.gated = true;
    d.ffn.experts = {.count = 3, .width = 4, .balance = 0.1f, .dense_layers = {0}, .shared = 2};
  });
  list.decoder_with("sigmoids of the best groups by a bias, a gated shared expert",
                    [](Spec&, StackSpec& d) {
                      d.ffn.experts = {.count = 6,
                                       .chosen = 3,
                                       .balance = 0.2f,
                                       .score = ExpertScore::sigmoid,
                                       .selection_bias = true,
                                       .scale = 2,
                                       .groups = 3,
                                       .groups_chosen = 2,
                                       .shared = 1,
                                       .shared_width = 3,
                                       .shared_gate = true};
                    });
  list.decoder_with("sigmoids that are not normalised", [](Spec&, StackSpec& d) {
    d.ffn.experts = {.count = 4,
                     .chosen = 1,
                     .normalise = false,
                     .score = ExpertScore::sigmoid,
                     .groups = 2,
                     .groups_chosen = 1};
  });
  list.encoder_with(
      "experts with a bias of their sum after a dense layer", [](Spec&, StackSpec& e) {
        e.ffn.experts = {
            .count = 3, .normalise = false, .balance = 0.1f, .dense_layers = {0}, .sum_bias = true};
      });
  list.decoder_with("a sparse mixer", [](Spec&, StackSpec& d) {
    d.ffn.experts = {
        .count = 4, .balance = 0.1f, .score = ExpertScore::sparse_mixer, .tolerance = 0.4f};
  });
  list.decoder_with("xielu", [](Spec&, StackSpec& d) { d.ffn.xielu = true; });
  list.decoder_with("one of the experts", [](Spec&, StackSpec& d) {
    d.ffn.experts = {.count = 3, .chosen = 1, .normalise = false, .balance = 0.5f};
  });
}

void add_layer_groups(List& list) {
  list.encoder_with("layers with the same weights", [](Spec& s, StackSpec& e) {
    e.layers = 4;
    e.layer_groups = 2;
    s.dropout = {0.1f, 0.1f, 0.1f};
  });
  list.decoder_with("layers with the same weights",
                    [](Spec&, StackSpec& d) { d.layer_groups = 1; });
}

void add_heads(List& list) {
  list.decoder_with("untied with bias", [](Spec& s, StackSpec&) {
    s.head.tied = false;
    s.head.bias = true;
  });
  list.decoder_with("capped logits", [](Spec& s, StackSpec&) { s.head.softcap = 2; });
  list.decoder_with("scaled embedding and head",
                    [](Spec& s, StackSpec&) { s.scaled_embedding = s.head.scaled = true; });
  list.decoder_with("classes of the last token", [](Spec& s, StackSpec&) {
    s.head = {.kind = HeadKind::sequence, .labels = 3, .pooling = Pooling::last};
  });
  list.encoder_with("masked words", [](Spec& s, StackSpec&) {
    s.token_types = 2;
    s.head.transform = s.head.transform_norm = s.head.bias = true;
  });
  list.encoder_with("masked words by a wider matrix", [](Spec& s, StackSpec&) {
    s.embedding_width = 6;
    s.head = {.tied = false, .transform = true, .transform_norm = true, .transform_width = 10};
  });
  list.encoder_with("classes of the mean of outputs", [](Spec& s, StackSpec&) {
    s.head = {.kind = HeadKind::sequence,
              .labels = 3,
              .transform = true,
              .pooling = Pooling::mean,
              .pool_transformed = true};
  });
  list.encoder_with("pooled", [](Spec& s, StackSpec&) {
    s.head = {.kind = HeadKind::pooled, .transform = true, .activation = Activation::tanh};
  });
  list.encoder_with("pooled without a dense layer", [](Spec& s, StackSpec&) {
    s.head = {.kind = HeadKind::pooled, .pooling = Pooling::mean};
  });
  list.encoder_with("classes", [](Spec& s, StackSpec&) {
    s.head = {.kind = HeadKind::sequence,
              .labels = 3,
              .bias = true,
              .transform = true,
              .transform_bias = false};
  });
  list.encoder_with("classes of the mean", [](Spec& s, StackSpec&) {
    s.head = {.kind = HeadKind::sequence, .labels = 3, .pooling = Pooling::mean};
  });
  list.encoder_with("tags", [](Spec& s, StackSpec&) {
    s.head = {.kind = HeadKind::token, .labels = 3, .bias = true};
  });
  list.encoder_with("spans", [](Spec& s, StackSpec&) {
    s.head = {.kind = HeadKind::span, .labels = 2, .bias = true};
  });
}

void read_images(Spec& s) {
  s.input.kind = InputKind::image;
  s.input.size = 4;
  s.input.patch = 2;
  s.input.channels = 3;
}

void read_audio(Spec& s) {
  s.input.kind = InputKind::audio;
  s.input.bins = 3;
  s.input.frames = 5;
}

void add_inputs(List& list) {
  list.encoder_with("image", [](Spec& s, StackSpec&) {
    read_images(s);
    s.vocabulary = 0;
    s.head = {.kind = HeadKind::sequence, .labels = 3, .bias = true};
  });
  list.encoder_with("audio", [](Spec& s, StackSpec& e) {
    read_audio(s);
    s.vocabulary = 0;
    e.position.kind = PositionKind::sinusoidal;
    e.position.waves = Waves::spread;
    s.head = {.kind = HeadKind::pooled, .pooling = Pooling::mean};
  });
}

void add_pairs(List& list) {
  list.both_with("plain", [](Spec&, StackSpec&, StackSpec&) {});
  list.both_with("image", [](Spec& s, StackSpec&, StackSpec&) { read_images(s); });
  list.both_with("audio", [](Spec& s, StackSpec& e, StackSpec&) {
    read_audio(s);
    e.position.kind = PositionKind::sinusoidal;
    e.position.stored = true;
  });
  list.both_with("post-norm, separate vocabularies", [](Spec& s, StackSpec& e, StackSpec& d) {
    s.source_vocabulary = 5;
    e.placement = d.placement = {false, false, true};
    e.final_norm = d.final_norm = false;
    e.embedding_norm = d.embedding_norm = true;
  });
  list.both_with("relative, gated, scaled head", [](Spec& s, StackSpec& e, StackSpec& d) {
    for (StackSpec* stack : {&e, &d}) {
      stack->position.kind = PositionKind::none;
      stack->position.bias = DistanceBias::relative;
      stack->position.buckets = 8;
      stack->position.distance = 6;
      stack->norm.kind = NormKind::rms;
      stack->ffn.gated = true;
      stack->ffn.bias = stack->attention.bias = stack->attention.output_bias = false;
      stack->attention.scale = 1;
    }
    s.head.scaled = true;
  });
  list.both_with("rotary, grouped, experts, different stacks",
                 [](Spec& s, StackSpec& e, StackSpec& d) {
                   e.layers = 1;
                   d.position.kind = PositionKind::rotary;
                   d.attention.heads = 4;
                   d.attention.kv_heads = 2;
                   d.attention.norm = QueryKeyNorm::head;
                   d.norm.kind = NormKind::rms;
                   d.attention.windows = {4};
                   d.ffn.experts = {.count = 3, .balance = 0.1f};
                   s.head.tied = false;
                 });
}

}  // namespace

std::vector<Mixture> all_mixtures() {
  List list;
  add_attentions(list);
  add_linear_mixers(list);
  add_positions(list);
  add_disentangled(list);
  add_rotations(list);
  add_norms(list);
  add_feed_forwards(list);
  add_experts(list);
  add_layer_groups(list);
  add_heads(list);
  add_inputs(list);
  add_pairs(list);
  return list.all;
}

}  // namespace fovea::test
