#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Phi 1 and 2 (Gunasekar et al. 2023): parallel sublayers behind one norm, rotary positions for a
// part of each head, biases everywhere.
void phi_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s,
              {.epsilon = 1e-5f,
               .epsilon_key = "layer_norm_eps",
               .activation = "gelu_new",
               .rotary_share = 0.5f});
  bool heads_normed = d.attention.norm == QueryKeyNorm::head;
  io("qk_layernorm", heads_normed, false);
  d.attention.norm = heads_normed ? QueryKeyNorm::head : QueryKeyNorm::none;
  io("embd_pdrop", s.dropout.embedding, 0);
  io("resid_pdrop", s.dropout.residual, 0);
  d.norm.kind = NormKind::layer;
  d.parallel = d.one_norm = true;
  d.ffn.gated = false;
  d.attention.bias = d.attention.output_bias = d.ffn.bias = true;
  if (io.reading()) io.refuse_unknown({});
}

const Names phi_names = with_decoder_heads(
    {{"model.embed_tokens.weight", "embedding.token"},
     {"model.layers.{i}.self_attn.{q,k,v}_proj.{weight,bias}",
      "decoder.{i}.attention.{query,key,value}.{weight,bias}"},
     {"model.layers.{i}.self_attn.dense.{weight,bias}",
      "decoder.{i}.attention.output.{weight,bias}"},
     {"model.layers.{i}.self_attn.{q,k}_layernorm.{weight,bias}",
      "decoder.{i}.attention.{query,key}_norm.{weight,bias}"},
     {"model.layers.{i}.input_layernorm.{weight,bias}",
      "decoder.{i}.norm.attention.input.{weight,bias}"},
     {"model.layers.{i}.mlp.fc{1,2}.{weight,bias}", "decoder.{i}.ffn.{up,down}.{weight,bias}"},
     {"model.final_layernorm.{weight,bias}", "decoder.norm.final.{weight,bias}"},
     {"lm_head.{weight,bias}", "head.output.{weight,bias}"}});

}  // namespace

const Family phi = {"phi", with_head_bias(decoder_architectures("Phi", "PhiForCausalLM")),
                    phi_config, phi_names, "model."};

}  // namespace fovea::model
