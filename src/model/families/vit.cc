// Families of encoders of images: the tokens are square patches of an image.

#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

void patches_config(Config& io, Spec& s, int64_t class_tokens) {
  if (!s.encoder) s.encoder.emplace();
  s.decoder.reset();
  StackSpec& e = *s.encoder;
  s.input.kind = InputKind::image;
  s.input.class_tokens = class_tokens;
  s.vocabulary = 0;
  io("image_size", s.input.size, 224);
  io("patch_size", s.input.patch, 16);
  io("num_channels", s.input.channels, 3);
  const int64_t side = s.input.size / std::max<int64_t>(1, s.input.patch);
  s.context = side * side + class_tokens;
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

// ViT (Dosovitskiy et al. 2021).
void vit_config(Config& io, Spec& s) { patches_config(io, s, 1); }

// DeiT (Touvron et al. 2021, "Training data-efficient image transformers"): ViT with a token for
// distillation.
void deit_config(Config& io, Spec& s) {
  if (!io.reading() && s.head.distilled)
    io.write("architectures", {"DeiTForImageClassificationWithTeacher"});
  patches_config(io, s, 2);
}

Names patches_names(const std::string& prefix) {
  return {
      {prefix + "embeddings.{cls,distillation}_token", "input.{class,distillation}",
       Stored::batched},
      {prefix + "embeddings.position_embeddings", "encoder.position", Stored::batched},
      {prefix + "embeddings.patch_embeddings.projection.{weight,bias}", "input.patch.{weight,bias}",
       Stored::image_convolution},
      {prefix + "encoder.layer.{i}.attention.attention.{query,key,value}.{weight,bias}",
       "encoder.{i}.attention.{query,key,value}.{weight,bias}"},
      {prefix + "encoder.layer.{i}.attention.output.dense.{weight,bias}",
       "encoder.{i}.attention.output.{weight,bias}"},
      {prefix + "encoder.layer.{i}.layernorm_{before,after}.{weight,bias}",
       "encoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
      {prefix + "encoder.layer.{i}.{intermediate,output}.dense.{weight,bias}",
       "encoder.{i}.ffn.{up,down}.{weight,bias}"},
      {prefix + "layernorm.{weight,bias}", "encoder.norm.final.{weight,bias}"},
      {prefix + "pooler.dense.{weight,bias}", "pooler.transform.{weight,bias}"},
      {"classifier.{weight,bias}", "sequence.output.{weight,bias}", Stored::plain,
       [](const Spec& s) { return !s.head.distilled; }},
      {"cls_classifier.{weight,bias}", "sequence.output.{weight,bias}"},
      {"distillation_classifier.{weight,bias}", "sequence.distilled.{weight,bias}"},
  };
}

Names patches_names_in_memory(const std::string& prefix) {
  return {
      {prefix + "layers.{i}.attention.{q,k,v,o}_proj.{weight,bias}",
       "encoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
      {prefix + "layers.{i}.layernorm_{before,after}.{weight,bias}",
       "encoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
      {prefix + "layers.{i}.mlp.fc{1,2}.{weight,bias}", "encoder.{i}.ffn.{up,down}.{weight,bias}"},
  };
}

constexpr HeadSpec kLabels{.kind = HeadKind::sequence, .labels = 2, .bias = true};
constexpr HeadSpec kPooler{
    .kind = HeadKind::pooled, .transform = true, .activation = Activation::tanh};

}  // namespace

const Family vit = {"vit",
                    {{"ViTForImageClassification", kLabels}, {"ViTModel", kPooler}},
                    vit_config,
                    patches_names("vit."),
                    "vit.",
                    {},
                    patches_names_in_memory("vit."),
                    true};

const Family deit = {"deit",
                     {{"DeiTForImageClassification", kLabels},
                      {"DeiTForImageClassificationWithTeacher",
                       {.kind = HeadKind::sequence, .labels = 2, .bias = true, .distilled = true}},
                      {"DeiTModel", kPooler}},
                     deit_config,
                     patches_names("deit."),
                     "deit.",
                     {},
                     patches_names_in_memory("deit."),
                     true};

}  // namespace fovea::model
