#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// StarCoder (Li et al. 2023): GPT-2 with one key-value head.
void gpt_bigcode_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.position.kind = PositionKind::learned;
  gpt2_sizes(io, s, {.activation = "gelu_pytorch_tanh"});
  bool one_head = d.attention.kv_heads == 1;
  io("multi_query", one_head, true);
  d.attention.kv_heads = one_head ? 1 : d.attention.heads;
  io.only("scale_attn_weights", true);
  io.only("add_cross_attention", false);
  if (io.reading())
    io.refuse_unknown({"num_key_value_heads", "n_ctx", "attention_softmax_in_fp32",
                       "scale_attention_softmax_in_fp32", "inference_runner", "max_batch_size",
                       "pad_key_length", "pre_allocate_kv_cache", "runner_max_sequence_length",
                       "validate_runner_input", "summary_activation", "summary_first_dropout",
                       "summary_proj_to_labels", "summary_type", "summary_use_proj"});
}

const Names gpt_bigcode_names = with_decoder_heads(
    {{"transformer.w{t,p}e.weight", "{embedding.token,decoder.position}"},
     {"transformer.h.{i}.ln_{1,2}.{weight,bias}",
      "decoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
     {"transformer.h.{i}.attn.c_attn.{weight,bias}",
      "decoder.{i}.attention.{query+key+value}.{weight,bias}", Stored::by_head},
     {"transformer.h.{i}.attn.c_proj.{weight,bias}", "decoder.{i}.attention.output.{weight,bias}"},
     {"transformer.h.{i}.mlp.c_{fc,proj}.{weight,bias}", "decoder.{i}.ffn.{up,down}.{weight,bias}"},
     {"transformer.ln_f.{weight,bias}", "decoder.norm.final.{weight,bias}"},
     {"lm_head.weight", "head.output.weight"}},
    "classifier");

}  // namespace

const Family gpt_bigcode = {
    "gpt_bigcode",      decoder_architectures("GPTBigCode", "GPTBigCodeForCausalLM"),
    gpt_bigcode_config, gpt_bigcode_names,
    "transformer.",     {".attn.bias"}};

}  // namespace fovea::model
