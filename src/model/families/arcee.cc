#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// AFM (Arcee AI 2025): LLaMA with squared ReLU instead of a gate.
void arcee_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.epsilon = 1e-5f, .activation = "relu2"});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  io("mlp_bias", d.ffn.bias, false);
  d.ffn.gated = false;
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

const Family arcee = {"arcee", decoder_architectures("Arcee", "ArceeForCausalLM"), arcee_config,
                      with_own_prefix_of_answers(llama_names()), "model."};

}  // namespace fovea::model
