#include "families/bert.h"
#include "families/registry.h"

namespace fovea {
namespace {

// ViT (Dosovitskiy et al. 2021): the tokens are square patches of an image.
void vit_config(Config& io, Spec& s) {
  if (!s.encoder) s.encoder.emplace();
  s.decoder.reset();
  StackSpec& e = *s.encoder;
  s.input.kind = InputKind::image;
  s.vocabulary = 0;
  io("image_size", s.input.size, 224);
  io("patch_size", s.input.patch, 16);
  io("num_channels", s.input.channels, 3);
  s.context = (s.input.size / s.input.patch) * (s.input.size / s.input.patch) + 1;
  io("hidden_size", s.width);
  io("num_hidden_layers", e.layers);
  io("num_attention_heads", e.attention.heads);
  io("intermediate_size", e.ffn.width);
  io("hidden_act", e.ffn.activation, "gelu");
  io("layer_norm_eps", e.norm.epsilon, 1e-12f);
  io("qkv_bias", e.attention.bias, true);
  io("hidden_dropout_prob", s.dropout.residual, 0);
  io("attention_probs_dropout_prob", s.dropout.attention, 0);
  s.dropout.embedding = s.dropout.residual;
  if (io.reading())
    io.refuse_unknown(
        {"encoder_stride", "pooler_act", "pooler_output_size", "tie_word_embeddings"});
}

const Names vit_names = {
    {"vit.embeddings.cls_token", "input.class", Stored::batched},
    {"vit.embeddings.position_embeddings", "encoder.position", Stored::batched},
    {"vit.embeddings.patch_embeddings.projection.{weight,bias}", "input.patch.{weight,bias}",
     Stored::image_convolution},
    {"vit.encoder.layer.{i}.attention.attention.{query,key,value}.{weight,bias}",
     "encoder.{i}.attention.{query,key,value}.{weight,bias}"},
    {"vit.encoder.layer.{i}.attention.output.dense.{weight,bias}",
     "encoder.{i}.attention.output.{weight,bias}"},
    {"vit.encoder.layer.{i}.layernorm_{before,after}.{weight,bias}",
     "encoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
    {"vit.encoder.layer.{i}.{intermediate,output}.dense.{weight,bias}",
     "encoder.{i}.ffn.{up,down}.{weight,bias}"},
    {"vit.layernorm.{weight,bias}", "encoder.norm.final.{weight,bias}"},
    {"vit.pooler.dense.{weight,bias}", "pooler.transform.{weight,bias}"},
    {"classifier.{weight,bias}", "sequence.output.{weight,bias}"},
};

const Names vit_in_memory = {
    {"vit.layers.{i}.attention.{q,k,v,o}_proj.{weight,bias}",
     "encoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
    {"vit.layers.{i}.layernorm_{before,after}.{weight,bias}",
     "encoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
    {"vit.layers.{i}.mlp.fc{1,2}.{weight,bias}", "encoder.{i}.ffn.{up,down}.{weight,bias}"},
};

}  // namespace

const Family vit = {
    "vit",
    {{"ViTForImageClassification", {.kind = HeadKind::sequence, .labels = 2, .bias = true}},
     {"ViTModel",
      {.kind = HeadKind::pooled, .transform = true, .activation = ActivationKind::tanh}}},
    vit_config,
    vit_names,
    "vit.",
    {},
    vit_in_memory,
    true};

}  // namespace fovea
