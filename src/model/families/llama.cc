#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// LLaMA 1 to 3 and all models of the same shape (Touvron et al. 2023).
void llama_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  io("mlp_bias", d.ffn.bias, false);
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

Names llama_attention_names() {
  return {
      {"model.embed_tokens.weight", "embedding.token"},
      {"model.layers.{i}.self_attn.{q,k,v,o}_proj.{weight,bias}",
       "decoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
      {"model.layers.{i}.self_attn.{q,k}_norm.weight",
       "decoder.{i}.attention.{query,key}_norm.weight"},
      {"model.norm.weight", "decoder.norm.final.weight"},
      {"lm_head.weight", "head.output.weight"},
  };
}

Names llama_names() {
  return with_decoder_heads(llama_attention_names()) +
         Names{{"model.layers.{i}.{input,post_attention}_layernorm.weight",
                "decoder.{i}.norm.{attention,ffn}.input.weight"},
               {"model.layers.{i}.mlp.{gate,up,down}_proj.{weight,bias}",
                "decoder.{i}.ffn.{gate,up,down}.{weight,bias}"}};
}

const Family llama = {"llama",      decoder_architectures("Llama", "LlamaForCausalLM"),
                      llama_config, with_own_prefix_of_answers(llama_names()),
                      "model.",     {".rotary_emb.inv_freq"}};

}  // namespace fovea::model
