#include "base/error.h"
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

// Ministral 8B, whose layers may differ in their windows.
void ministral_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.kv_heads = 8});
  int64_t window = io.says("sliding_window") ? 0 : 4096;
  for (const int64_t w : d.attention.windows) window = w > 0 ? w : window;
  if (io.reading() || window > 0) io("sliding_window", window, window);
  io.layer_types(d, window, {true});
  if (io.reading()) io.refuse_unknown({});
}

// Ministral 3 (2025): YaRN, and queries that grow with their position.
void ministral3_config(Config& io, Spec& s) {
  if (io.reading() && io.value("rope_parameters").is_null())
    fail(ErrorKind::BadFile, "{}: rope_parameters is missing; expected an object", io.name());
  llama_sizes(
      io, s,
      {.theta = 1e6f, .epsilon = 1e-5f, .kv_heads = 8, .head_width = 128, .query_growth = true});
  window_of_all(io, *s.decoder, 0);
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

const Family ministral = {"ministral", decoder_architectures("Ministral", "MinistralForCausalLM"),
                          ministral_config, with_own_prefix_of_answers(llama_names()), "model."};
const Family ministral3 = {"ministral3",
                           decoder_architectures("Ministral3", "Ministral3ForCausalLM"),
                           ministral3_config, llama_names(), "model."};
const Family mistral = {"mistral", decoder_architectures("Mistral", "MistralForCausalLM"),
                        mistral_config, llama_names(), "model."};

}  // namespace fovea::model
