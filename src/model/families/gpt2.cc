#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// GPT-2 (Radford et al. 2019). Its linear layers are stored as [in, out], with query, key and value
// fused.
void gpt2_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.position.kind = PositionKind::learned;
  gpt2_sizes(io, s, {});
  io.only("scale_attn_weights", true);
  io.only("scale_attn_by_inverse_layer_idx", false);
  io.only("add_cross_attention", false);
  if (io.reading()) {
    io.refuse_unknown({"n_ctx", "reorder_and_upcast_attn", "summary_activation",
                       "summary_first_dropout", "summary_proj_to_labels", "summary_type",
                       "summary_use_proj"});
  }
}

const Names gpt2_names = with_decoder_heads(
    {
        {"transformer.w{t,p}e.weight", "{embedding.token,decoder.position}"},
        {"transformer.h.{i}.ln_{1,2}.{weight,bias}",
         "decoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
        {"transformer.h.{i}.attn.c_attn.{weight,bias}",
         "decoder.{i}.attention.{query+key+value}.{weight,bias}", Stored::transposed},
        {"transformer.h.{i}.attn.c_proj.{weight,bias}",
         "decoder.{i}.attention.output.{weight,bias}", Stored::transposed},
        {"transformer.h.{i}.mlp.c_{fc,proj}.{weight,bias}",
         "decoder.{i}.ffn.{up,down}.{weight,bias}", Stored::transposed},
        {"transformer.ln_f.{weight,bias}", "decoder.norm.final.{weight,bias}"},
        {"lm_head.weight", "head.output.weight"},
    },
    "classifier");

}  // namespace

void gpt2_sizes(Config& io, Spec& s, const Gpt2Defaults& absent) {
  StackSpec& d = *s.decoder;
  io("vocab_size", s.vocabulary);
  classifier_padding(io, s);
  if (absent.context > 0)
    io("n_positions", s.context, absent.context);
  else
    io("n_positions", s.context);
  io("n_embd", s.width);
  io("n_layer", d.layers);
  io("n_head", d.attention.heads);
  io("n_inner", d.ffn.width, 0);
  io("activation_function", d.ffn.activation, absent.activation);
  io("layer_norm_epsilon", d.norm.epsilon, 1e-5f);
  io("initializer_range", s.init_deviation, 0.02f);
  io("embd_pdrop", s.dropout.embedding, absent.dropout);
  io("attn_pdrop", s.dropout.attention, absent.dropout);
  io("resid_pdrop", s.dropout.residual, absent.dropout);
  io("tie_word_embeddings", s.head.tied, absent.tied);
}

const Family gpt2 = {"gpt2",
                     decoder_architectures("GPT2", "GPT2LMHeadModel"),
                     gpt2_config,
                     gpt2_names,
                     "transformer.",
                     {".attn.bias", ".attn.masked_bias"},
                     {{"score.{weight,bias}", "tagger.output.{weight,bias}"}}};

}  // namespace fovea::model
