#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// The window is used only if use_sliding_window is true: in those layers that layer_types lists, or
// else in the layers from max_window_layers on; with `period` 2, in every second layer before it.
void windows(Config& io, StackSpec& d, int64_t period = 1) {
  const bool local = !d.attention.windows.empty();
  bool used = local;
  int64_t window = 4096, first = 28;
  if (!io.reading() && local)
    window = *std::max_element(d.attention.windows.begin(), d.attention.windows.end());
  io("use_sliding_window", used, false);
  if (used)
    io("sliding_window", window, window);
  else
    io.value("sliding_window");  // may be 0
  if (io.reading()) io("max_window_layers", first, first);
  std::vector<bool> pattern;
  for (int64_t i = 0; i < d.layers; ++i)
    pattern.push_back(period == 1 ? i >= first : i < first && i % period == 0);
  io.layer_types(d, used ? window : 0, pattern);
}

// Qwen 2 (Yang et al. 2024): LLaMA with biases of query, key and value.
void qwen2_config(Config& io, Spec& s) {
  llama_sizes(io, s, {});
  s.decoder->attention.bias = true;
  windows(io, *s.decoder);
  if (io.reading()) io.refuse_unknown({});
}

// Qwen 3 (2025): norms of queries and keys instead of biases.
void qwen3_common(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.head_width = 128});
  d.attention.norm = QueryKeyNorm::head;
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  windows(io, d);
}

void qwen3_config(Config& io, Spec& s) {
  qwen3_common(io, s);
  if (io.reading()) io.refuse_unknown({});
}

// The experts of both generations.
void experts(Config& io, Spec& s, int64_t count, int64_t chosen, int64_t width) {
  ExpertsSpec& e = s.decoder->ffn.experts;
  int64_t step = 1, given = e.count;
  io("num_experts", given, count);
  io("num_local_experts", given, given);
  e.count = given;
  io("num_experts_per_tok", e.chosen, chosen);
  io("moe_intermediate_size", e.width, width);
  io("norm_topk_prob", e.normalise, false);
  io("router_aux_loss_coef", e.balance, 0.001f, 1e3f);
  io("mlp_only_layers", e.dense_layers);
  io("decoder_sparse_step", step, 1);
  for (int64_t i = 0; i < s.decoder->layers; ++i)
    if ((i + 1) % step != 0) e.dense_layers.push_back(i);
}

void qwen3_moe_config(Config& io, Spec& s) {
  qwen3_common(io, s);
  experts(io, s, 128, 8, 768);
  if (io.reading()) io.refuse_unknown({});
}

// Qwen 1.5 and 2 with experts, and one more that all tokens use, with a gate (2024).
void qwen2_moe_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  ExpertsSpec& e = d.ffn.experts;
  llama_sizes(io, s, {});
  io("qkv_bias", d.attention.bias, true);
  windows(io, d, 2);
  e.shared = 1;
  e.shared_gate = true;
  io("shared_expert_intermediate_size", e.shared_width, 5632);
  experts(io, s, 60, 4, 1408);
  if (io.reading()) io.refuse_unknown({});
}

const Names moe_names = llama_names() + expert_names();

const Names qwen2_moe_names =
    moe_names +
    Names{{"model.layers.{i}.mlp.shared_expert.{gate,up,down}_proj.weight",
           "decoder.{i}.ffn.shared.{gate,up,down}.weight"},
          {"model.layers.{i}.mlp.shared_expert_gate.weight", "decoder.{i}.ffn.shared_gate.weight"}};

}  // namespace

const Family qwen2 = {"qwen2", decoder_architectures("Qwen2", "Qwen2ForCausalLM"), qwen2_config,
                      with_own_prefix_of_answers(llama_names()), "model."};
const Family qwen3 = {"qwen3", decoder_architectures("Qwen3", "Qwen3ForCausalLM"), qwen3_config,
                      with_own_prefix_of_answers(llama_names()), "model."};
const Family qwen3_moe = {"qwen3_moe",
                          decoder_architectures("Qwen3Moe", "Qwen3MoeForCausalLM"),
                          qwen3_moe_config,
                          with_own_prefix_of_answers(moe_names),
                          "model.",
                          {},
                          expert_names_in_memory()};
const Family qwen2_moe = {"qwen2_moe",
                          decoder_architectures("Qwen2Moe", "Qwen2MoeForCausalLM"),
                          qwen2_moe_config,
                          with_own_prefix_of_answers(qwen2_moe_names),
                          "model.",
                          {},
                          expert_names_in_memory()};

}  // namespace fovea::model
