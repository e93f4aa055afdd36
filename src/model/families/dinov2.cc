#include "families/registry.h"

namespace fovea::model {
namespace {

// The width of a gated feed-forward layer: two thirds of the plain one, rounded up to 8.
int64_t gated_width(int64_t plain) { return (plain * 2 / 3 + 7) / 8 * 8; }

// Reads or writes the width of the feed-forward layers as a multiple of the model's.
void ffn_config(Config& io, const Spec& s, FeedForwardSpec& f) {
  constexpr int64_t kMostRatio = 64;
  const auto width_of = [&](int64_t ratio) {
    return f.gated ? gated_width(s.width * ratio) : s.width * ratio;
  };
  int64_t ratio = 1;
  while (!io.reading() && ratio < kMostRatio && width_of(ratio) != f.width) ++ratio;
  io("mlp_ratio", ratio, 4);
  f.width = width_of(ratio);
}

// DINOv2 (Oquab et al. 2023) and its registers (Darcet et al. 2024).
void dinov2_config(Config& io, Spec& s) {
  if (!s.encoder) s.encoder.emplace();
  s.decoder.reset();
  StackSpec& e = *s.encoder;
  s.input.kind = InputKind::image;
  s.vocabulary = 0;
  io("image_size", s.input.size, 224);
  io("patch_size", s.input.patch, 14);
  io("num_channels", s.input.channels, 3);
  const int64_t side = s.input.size / std::max<int64_t>(1, s.input.patch);
  s.context = side * side + 1;
  io("hidden_size", s.width);
  io("num_hidden_layers", e.layers);
  io("num_attention_heads", e.attention.heads);
  io("use_swiglu_ffn", e.ffn.gated, false);
  ffn_config(io, s, e.ffn);
  if (e.ffn.gated)
    e.ffn.activation = Activation::silu;
  else
    io("hidden_act", e.ffn.activation, "gelu");
  io("layer_norm_eps", e.norm.epsilon, 1e-6f);
  io("qkv_bias", e.attention.bias, true);
  io("layerscale_value", e.layer_scale, 1, 1e6f);
  io("hidden_dropout_prob", s.dropout.embedding, 0);
  io("attention_probs_dropout_prob", s.dropout.attention, 0);
  if (io.reading())
    io.refuse_unknown({"apply_layernorm", "drop_path_rate", "hidden_act", "out_features",
                       "out_indices", "reshape_hidden_states", "stage_names", "use_mask_token"});
}

void registers_config(Config& io, Spec& s) {
  io("num_register_tokens", s.input.registers, 4);
  dinov2_config(io, s);
}

bool has_gates(const Spec& s) { return s.encoder->ffn.gated; }
bool has_no_gates(const Spec& s) { return !s.encoder->ffn.gated; }

Names dinov2_names(const std::string& prefix) {
  const std::string layer = prefix + "encoder.layer.{i}.";
  return {
      {prefix + "embeddings.{cls_token,register_tokens}", "input.{class,registers}",
       Stored::batched},
      {prefix + "embeddings.position_embeddings", "encoder.position", Stored::batched},
      {prefix + "embeddings.patch_embeddings.projection.{weight,bias}", "input.patch.{weight,bias}",
       Stored::image_convolution},
      {layer + "attention.attention.{query,key,value}.{weight,bias}",
       "encoder.{i}.attention.{query,key,value}.{weight,bias}"},
      {layer + "attention.output.dense.{weight,bias}",
       "encoder.{i}.attention.output.{weight,bias}"},
      {layer + "norm{1,2}.{weight,bias}", "encoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
      {layer + "layer_scale{1,2}.lambda1", "encoder.{i}.scale.{attention,ffn}"},
      {layer + "mlp.fc{1,2}.{weight,bias}", "encoder.{i}.ffn.{up,down}.{weight,bias}",
       Stored::plain, has_no_gates},
      {layer + "mlp.weights_in.{weight,bias}", "encoder.{i}.ffn.{gate+up}.{weight,bias}",
       Stored::plain, has_gates},
      {layer + "mlp.weights_out.{weight,bias}", "encoder.{i}.ffn.down.{weight,bias}", Stored::plain,
       has_gates},
      {prefix + "layernorm.{weight,bias}", "encoder.norm.final.{weight,bias}"},
      {"classifier.{weight,bias}", "sequence.output.{weight,bias}"},
  };
}

Names dinov2_names_in_memory(const std::string& prefix) {
  const std::string layer = prefix + "encoder.layer.{i}.";
  return {
      {layer + "attention.{q,k,v,o}_proj.{weight,bias}",
       "encoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
      {layer + "mlp.{gate,up,down}_proj.{weight,bias}",
       "encoder.{i}.ffn.{gate,up,down}.{weight,bias}", Stored::plain, has_gates},
  };
}

constexpr HeadSpec kClassifier{
    .kind = HeadKind::sequence, .labels = 2, .bias = true, .pooling = Pooling::first_and_mean};
constexpr HeadSpec kClassToken{.kind = HeadKind::pooled};

}  // namespace

const Family dinov2 = {
    "dinov2",
    {{"Dinov2ForImageClassification", kClassifier}, {"Dinov2Model", kClassToken}},
    dinov2_config,
    dinov2_names("dinov2."),
    "dinov2.",
    {"embeddings.mask_token"},
    dinov2_names_in_memory("dinov2."),
    true};

const Family dinov2_with_registers = {"dinov2_with_registers",
                                      {{"Dinov2WithRegistersForImageClassification", kClassifier},
                                       {"Dinov2WithRegistersModel", kClassToken}},
                                      registers_config,
                                      dinov2_names("dinov2_with_registers."),
                                      "dinov2_with_registers.",
                                      {"embeddings.mask_token"},
                                      dinov2_names_in_memory("dinov2_with_registers."),
                                      true};

}  // namespace fovea::model
