#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Helium (Kyutai 2025): LLaMA that rotates pairs of neighbours.
void helium_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.theta = 100000, .epsilon = 1e-8f, .kv_heads = 20, .head_width = 128});
  io("attention_bias", d.attention.bias, false);
  io("mlp_bias", d.ffn.bias, false);
  d.position.rotary.neighbours = true;
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

const Family helium = {"helium", decoder_architectures("Helium", "HeliumForCausalLM"),
                       helium_config, llama_names(), "model."};

}  // namespace fovea::model
