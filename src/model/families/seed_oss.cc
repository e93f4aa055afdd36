#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Seed-OSS (ByteDance 2025): LLaMA with separate settings of the biases of attention.
void seed_oss_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.kv_heads = 8, .head_width = 128});
  io("attention_bias", d.attention.bias, true);
  io("attention_out_bias", d.attention.output_bias, false);
  io("mlp_bias", d.ffn.bias, false);
  io("residual_dropout", s.dropout.residual, 0.1f);
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

const Family seed_oss = {"seed_oss", decoder_architectures("SeedOss", "SeedOssForCausalLM"),
                         seed_oss_config, with_own_prefix_of_answers(llama_names()), "model."};

}  // namespace fovea::model
