#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// GPT-NeoX (Black et al. 2022): rotary positions for a part of each head, parallel sublayers.
void gpt_neox_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  io("vocab_size", s.vocabulary);
  classifier_padding(io, s);
  io("hidden_size", s.width);
  io("num_hidden_layers", d.layers);
  io("num_attention_heads", d.attention.heads);
  io("intermediate_size", d.ffn.width);
  io("hidden_act", d.ffn.activation, "gelu");
  io("layer_norm_eps", d.norm.epsilon, 1e-5f);
  io("use_parallel_residual", d.parallel, true);
  io("attention_bias", d.attention.bias, true);
  d.attention.output_bias = d.attention.bias;
  io("attention_dropout", s.dropout.attention, 0);
  io("hidden_dropout", s.dropout.residual, 0);
  s.dropout.embedding = s.dropout.residual;
  io("tie_word_embeddings", s.head.tied, false);
  d.position.kind = PositionKind::rotary;
  RotarySpec& rotary = d.position.rotary;
  float theta = rotary.theta;
  io("rotary_emb_base", theta, 10000, 1e9f);
  io("rotary_pct", rotary.share, 0.25f);
  if (io.value("rope_parameters").is_null()) {  // otherwise rope_parameters replaces the keys above
    const auto value_or = [&](const char* key, double absent) {
      const nlohmann::json value = io.value(key);
      return value.is_null() ? nlohmann::json(absent) : value;
    };
    io.only("rope_theta", value_or("rotary_emb_base", 10000));
    io.only("partial_rotary_factor", value_or("rotary_pct", 0.25));
  }
  io.rope(s.context, rotary, {.theta = theta});
  if (io.reading()) io.refuse_unknown({"is_decoder"});
}

const Names gpt_neox_names = with_decoder_heads(
    {{"gpt_neox.embed_in.weight", "embedding.token"},
     {"gpt_neox.layers.{i}.attention.query_key_value.{weight,bias}",
      "decoder.{i}.attention.{query+key+value}.{weight,bias}", Stored::by_head},
     {"gpt_neox.layers.{i}.attention.dense.{weight,bias}",
      "decoder.{i}.attention.output.{weight,bias}"},
     {"gpt_neox.layers.{i}.{input,post_attention}_layernorm.{weight,bias}",
      "decoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
     {"gpt_neox.layers.{i}.mlp.dense_{h_to_4h,4h_to_h}.{weight,bias}",
      "decoder.{i}.ffn.{up,down}.{weight,bias}"},
     {"gpt_neox.final_layer_norm.{weight,bias}", "decoder.norm.final.{weight,bias}"},
     {"embed_out.weight", "head.output.weight"}},
    "classifier");

}  // namespace

const Family gpt_neox = {"gpt_neox",
                         decoder_architectures("GPTNeoX", "GPTNeoXForCausalLM"),
                         gpt_neox_config,
                         gpt_neox_names,
                         "gpt_neox.",
                         {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"},
                         {{"lm_head.weight", "head.output.weight"},
                          {"score.{weight,bias}", "tagger.output.{weight,bias}"}}};

}  // namespace fovea::model
