#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// LLaMA with a sliding window (Jiang et al. 2023).
void mistral_config(Config& io, Spec& s) {
  llama_sizes(io, s, {});
  window_of_all(io, *s.decoder, 4096);
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

const Family mistral = {"mistral", decoder_architectures("Mistral", "MistralForCausalLM"),
                        mistral_config, llama_names(), "model."};

}  // namespace fovea::model
