#include <algorithm>
#include <cmath>

#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// GPT-J (Wang and Komatsuzaki 2021) and CodeGen (Nijkamp et al. 2022): parallel sublayers behind
// one norm, and rotary positions, of pairs of neighbours, for the first elements of each head.
void gptj_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  gpt2_sizes(io, s, {.context = 2048, .dropout = 0, .tied = false});
  RotarySpec& rotary = d.position.rotary;
  const int64_t heads = std::max<int64_t>(d.attention.heads, 1);  // 0 while a Spec is tried
  const auto width = static_cast<float>(s.width) / static_cast<float>(heads);
  auto turned = static_cast<int64_t>(width * rotary.share);
  io("rotary_dim", turned, 64);
  rotary.share = static_cast<float>(turned) / width;
  if (static_cast<int64_t>(width * rotary.share) < turned)
    rotary.share = std::nextafter(rotary.share, 1.0f);
  rotary.neighbours = true;
  d.position.kind = PositionKind::rotary;
  d.parallel = d.one_norm = true;
  d.attention.bias = d.attention.output_bias = false;
  io.only("scale_attn_weights", true);
  if (io.reading())
    io.refuse_unknown({"n_ctx", "rotary", "summary_activation", "summary_first_dropout",
                       "summary_proj_to_labels", "summary_type", "summary_use_proj"});
}

const Names gptj_common_names = {
    {"transformer.wte.weight", "embedding.token"},
    {"transformer.h.{i}.ln_1.{weight,bias}", "decoder.{i}.norm.attention.input.{weight,bias}"},
    {"transformer.h.{i}.attn.out_proj.weight", "decoder.{i}.attention.output.weight"},
    {"transformer.h.{i}.mlp.fc_{in,out}.{weight,bias}", "decoder.{i}.ffn.{up,down}.{weight,bias}"},
    {"transformer.ln_f.{weight,bias}", "decoder.norm.final.{weight,bias}"},
    {"lm_head.{weight,bias}", "head.output.{weight,bias}"}};

const Names gptj_names = with_decoder_heads(gptj_common_names) +
                         Names{{"transformer.h.{i}.attn.{q,k,v}_proj.weight",
                                "decoder.{i}.attention.{query,key,value}.weight"}};

// CodeGen's heads were distributed over four machines, each with its queries, values and keys.
const Names codegen_names =
    gptj_common_names +
    Names{{"transformer.h.{i}.attn.qkv_proj.weight",
           "decoder.{i}.attention.{query+value+key}.weight", Stored::by_quarter}};

}  // namespace

const Family gptj = {
    "gptj",         with_head_bias(decoder_architectures("GPTJ", "GPTJForCausalLM")),
    gptj_config,    gptj_names,
    "transformer.", {".attn.bias", ".attn.masked_bias"}};
const Family codegen = {"codegen",      with_head_bias(language_models("CodeGen")),
                        gptj_config,    codegen_names,
                        "transformer.", {".attn.causal_mask"}};

}  // namespace fovea::model
