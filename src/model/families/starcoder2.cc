#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// StarCoder 2 (Lozhkov et al. 2024): LLaMA with LayerNorm, biases and an ungated feed-forward
// layer.
void starcoder2_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s,
              {.epsilon = 1e-5f,
               .epsilon_key = "norm_epsilon",
               .activation = "gelu_pytorch_tanh",
               .tied = true});
  d.norm.kind = NormKind::layer;
  d.ffn.gated = false;
  io("use_bias", d.attention.bias, true);
  d.attention.output_bias = d.ffn.bias = d.attention.bias;
  window_of_all(io, d, 0);
  io("residual_dropout", s.dropout.residual, 0);
  io("embedding_dropout", s.dropout.embedding, 0);
  if (io.reading()) io.refuse_unknown({});
}

const Names starcoder2_names =
    with_decoder_heads(llama_attention_names()) +
    Names{{"model.layers.{i}.{input,post_attention}_layernorm.{weight,bias}",
           "decoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
          {"model.layers.{i}.mlp.c_{fc,proj}.{weight,bias}",
           "decoder.{i}.ffn.{up,down}.{weight,bias}"},
          {"model.norm.bias", "decoder.norm.final.bias"}};

}  // namespace

const Family starcoder2 = {"starcoder2",
                           decoder_architectures("Starcoder2", "Starcoder2ForCausalLM"),
                           starcoder2_config, starcoder2_names, "model."};

}  // namespace fovea::model
