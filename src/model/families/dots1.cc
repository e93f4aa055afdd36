#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// dots.llm1 (Huo et al. 2025): Qwen 3 with the experts of DeepSeek-V3.
void dots1_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.kv_heads = 32});
  d.attention.norm = QueryKeyNorm::head;
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  int64_t window = io.says("sliding_window") ? 0 : 4096, first = 62;
  for (const int64_t w : d.attention.windows) window = w > 0 ? w : window;
  if (io.reading() || window > 0) io("sliding_window", window, window);
  if (io.reading()) io("max_window_layers", first, first);
  std::vector<bool> local;
  for (int64_t i = 0; i < d.layers; ++i) local.push_back(i >= first);
  io.layer_types(d, window, local);
  grouped_experts(io, d, {});
  if (io.reading()) io.refuse_unknown({"num_local_experts"});
}

}  // namespace

const Family dots1 = {"dots1",
                      language_models("Dots1"),
                      dots1_config,
                      llama_names() + expert_names() + grouped_expert_names(),
                      "model.",
                      {},
                      expert_names_in_memory()};

}  // namespace fovea::model
