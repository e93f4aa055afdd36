// The two models of CLIP (Radford et al. 2021) and of SigLIP (Zhai et al. 2023): an encoder of
// images and a model of texts, whose vectors have the same width. towers.h opens both from one
// folder.

#include "families/registry.h"

namespace fovea::model {
namespace {

struct Sizes {
  int64_t width, layers, heads, ffn;
};

void stack_config(Config& io, Spec& s, StackSpec& stack, const Sizes& absent) {
  io("hidden_size", s.width, absent.width);
  io("num_hidden_layers", stack.layers, absent.layers);
  io("num_attention_heads", stack.attention.heads, absent.heads);
  io("intermediate_size", stack.ffn.width, absent.ffn);
  io("attention_dropout", s.dropout.attention, 0);
}

void image_config(Config& io, Spec& s, int64_t patch) {
  if (!s.encoder) s.encoder.emplace();
  s.decoder.reset();
  s.input.kind = InputKind::image;
  s.vocabulary = 0;
  io("image_size", s.input.size, 224);
  io("patch_size", s.input.patch, patch);
  io("num_channels", s.input.channels, 3);
  const int64_t side = s.input.size / std::max<int64_t>(1, s.input.patch);
  s.context = side * side + s.input.class_tokens;
  stack_config(io, s, *s.encoder, {768, 12, 12, 3072});
}

void clip_image_config(Config& io, Spec& s) {
  s.input.bias = false;
  image_config(io, s, 32);
  s.encoder->embedding_norm = true;
  io("hidden_act", s.encoder->ffn.activation, "quick_gelu");
  io("layer_norm_eps", s.encoder->norm.epsilon, 1e-5f);
  io("projection_dim", s.head.projection, 512);
  if (io.reading()) io.refuse_unknown({"dropout", "initializer_factor"});
}

void clip_text_config(Config& io, Spec& s) {
  if (!s.decoder) s.decoder.emplace();
  s.encoder.reset();
  io("vocab_size", s.vocabulary, 49408);
  io("max_position_embeddings", s.context, 77);
  stack_config(io, s, *s.decoder, {512, 12, 8, 2048});
  io("hidden_act", s.decoder->ffn.activation, "quick_gelu");
  io("layer_norm_eps", s.decoder->norm.epsilon, 1e-5f);
  io("projection_dim", s.head.projection, 512);
  if (io.reading()) io.refuse_unknown({"dropout", "initializer_factor"});
}

void siglip_image_config(Config& io, Spec& s) {
  s.input.class_tokens = 0;
  image_config(io, s, 16);
  io("hidden_act", s.encoder->ffn.activation, "gelu_pytorch_tanh");
  io("layer_norm_eps", s.encoder->norm.epsilon, 1e-6f);
  io.only("vision_use_head", true);
  if (io.reading()) io.refuse_unknown({});
}

void siglip_text_config(Config& io, Spec& s) {
  if (!s.encoder) s.encoder.emplace();
  s.decoder.reset();
  s.input.kind = InputKind::tokens;
  io("vocab_size", s.vocabulary, 32000);
  io("max_position_embeddings", s.context, 64);
  stack_config(io, s, *s.encoder, {768, 12, 12, 3072});
  io("hidden_act", s.encoder->ffn.activation, "gelu_pytorch_tanh");
  io("layer_norm_eps", s.encoder->norm.epsilon, 1e-6f);
  io("projection_size", s.head.projection, s.width);
  if (io.reading()) io.refuse_unknown({});
}

// The rules of a stack's layers, which both models share.
Names with_layers(const std::string& prefix, const std::string& stack, Names names) {
  const std::string layer = prefix + "encoder.layers.{i}.", ours = stack + ".{i}.";
  names.insert(
      names.end(),
      {{layer + "layer_norm{1,2}.{weight,bias}", ours + "norm.{attention,ffn}.input.{weight,bias}"},
       {layer + "self_attn.{q,k,v,out}_proj.{weight,bias}",
        ours + "attention.{query,key,value,output}.{weight,bias}"},
       {layer + "mlp.fc{1,2}.{weight,bias}", ours + "ffn.{up,down}.{weight,bias}"}});
  return names;
}

Names text_names(const std::string& stack, const std::string& projection) {
  return with_layers(
      "text_model.", stack,
      {{"text_model.embeddings.token_embedding.weight", "embedding.token"},
       {"text_model.embeddings.position_embedding.weight", stack + ".position"},
       {"text_model.final_layer_norm.{weight,bias}", stack + ".norm.final.{weight,bias}"},
       {projection, "pooler.output.{weight,bias}"}});
}

const std::string kImage = "vision_model.";

}  // namespace

const Family clip_vision_model = {
    "clip_vision_model",
    {{"CLIPVisionModelWithProjection", {.kind = HeadKind::pooled, .projection = 512}}},
    clip_image_config,
    with_layers(kImage, "encoder",
                {{kImage + "embeddings.class_embedding", "input.class", Stored::flattened},
                 {kImage + "embeddings.patch_embedding.weight", "input.patch.weight",
                  Stored::image_convolution},
                 {kImage + "embeddings.position_embedding.weight", "encoder.position"},
                 {kImage + "pre_layrnorm.{weight,bias}", "encoder.norm.embedding.{weight,bias}"},
                 {kImage + "post_layernorm.{weight,bias}", "encoder.norm.final.{weight,bias}"},
                 {"visual_projection.weight", "pooler.output.weight"}}),
    "",
    {"embeddings.position_ids"},
    {},
    true};

const Family clip_text_model = {
    "clip_text_model",
    {{"CLIPTextModelWithProjection",
      {.kind = HeadKind::pooled, .projection = 512, .pooling = Pooling::last}}},
    clip_text_config,
    text_names("decoder", "text_projection.{weight,bias}"),
    "",
    {"embeddings.position_ids"},
    {},
    true};

const Family siglip_vision_model = {
    "siglip_vision_model",
    {{"SiglipVisionModel", {.kind = HeadKind::pooled, .pooling = Pooling::attention}}},
    siglip_image_config,
    with_layers(kImage, "encoder",
                {{kImage + "embeddings.patch_embedding.{weight,bias}", "input.patch.{weight,bias}",
                  Stored::image_convolution},
                 {kImage + "embeddings.position_embedding.weight", "encoder.position"},
                 {kImage + "post_layernorm.{weight,bias}", "encoder.norm.final.{weight,bias}"},
                 {kImage + "head.probe", "pooler.pooling.query", Stored::batched},
                 {kImage + "head.attention.in_proj_{weight,bias}",
                  "pooler.pooling.attention.{query+key+value}.{weight,bias}"},
                 {kImage + "head.attention.out_proj.{weight,bias}",
                  "pooler.pooling.attention.output.{weight,bias}"},
                 {kImage + "head.layernorm.{weight,bias}", "pooler.pooling.norm.{weight,bias}"},
                 {kImage + "head.mlp.fc{1,2}.{weight,bias}",
                  "pooler.pooling.ffn.{up,down}.{weight,bias}"}}),
    "vision_model.",
    {"embeddings.position_ids"},
    {},
    true};

const Family siglip_text_model = {
    "siglip_text_model",
    {{"SiglipTextModel",
      {.kind = HeadKind::pooled, .projection = 768, .bias = true, .pooling = Pooling::last}}},
    siglip_text_config,
    text_names("encoder", "text_model.head.{weight,bias}"),
    "text_model.",
    {"embeddings.position_ids"},
    {},
    true};

}  // namespace fovea::model
