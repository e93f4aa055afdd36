#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// The router of DeepSeek-V3: a sigmoid of each logit, a bias for the choice, groups of experts.
void dots1_experts(Config& io, StackSpec& d) {
  ExpertsSpec& e = d.ffn.experts;
  e.score = ExpertScore::sigmoid;
  e.selection_bias = true;
  io("n_routed_experts", e.count);
  io("num_experts_per_tok", e.chosen);
  io("moe_intermediate_size", e.width, 1408);
  if (io.reading() || e.shared > 0) io("n_shared_experts", e.shared, 0);
  io("n_group", e.groups, 1);
  io("topk_group", e.groups_chosen, 1);
  io("norm_topk_prob", e.normalise, false);
  io("routed_scaling_factor", e.scale, 1, 1e6f);
  int64_t dense = std::ssize(e.dense_layers);
  if (!io.reading()) return io.write("first_k_dense_replace", dense);
  const nlohmann::json first = io.value("first_k_dense_replace");
  dense = 0;
  if (!first.is_null() && first != 0) io("first_k_dense_replace", dense, 0);
  for (int64_t i = 0; i < std::min(dense, d.layers); ++i) e.dense_layers.push_back(i);
}

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
  dots1_experts(io, d);
  if (io.reading()) io.refuse_unknown({"num_local_experts"});
}

}  // namespace

const Family dots1 = {"dots1",
                      language_models("Dots1"),
                      dots1_config,
                      llama_names() + expert_names() +
                          Names{{"model.layers.{i}.mlp.gate.e_score_correction_bias",
                                 "decoder.{i}.ffn.router.selection_bias"},
                                {"model.layers.{i}.mlp.shared_experts.{gate,up,down}_proj.weight",
                                 "decoder.{i}.ffn.shared.{gate,up,down}.weight"}},
                      "model.",
                      {},
                      expert_names_in_memory()};

}  // namespace fovea::model
