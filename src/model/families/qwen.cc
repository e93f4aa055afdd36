#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// The window is used only if use_sliding_window is true: in the layers from max_window_layers on,
// or in those that layer_types lists.
void windows(Config& io, StackSpec& d) {
  const bool local = !d.attention.windows.empty();
  bool used = local;
  int64_t window = 4096, first = 28;
  if (!io.reading() && local)
    window = *std::max_element(d.attention.windows.begin(), d.attention.windows.end());
  io("use_sliding_window", used, false);
  if (used || io.reading()) io("sliding_window", window, window);
  if (io.reading()) io("max_window_layers", first, first);
  std::vector<bool> pattern;
  for (int64_t i = 0; i < d.layers; ++i) pattern.push_back(i >= first);
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
  d.attention.head_width = io.reading() ? 128 : d.attention.head_width;
  llama_sizes(io, s, {});
  d.attention.norm = QueryKeyNorm::head;
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  windows(io, d);
}

void qwen3_config(Config& io, Spec& s) {
  qwen3_common(io, s);
  if (io.reading()) io.refuse_unknown({});
}

void qwen3_moe_config(Config& io, Spec& s) {
  ExpertsSpec& e = s.decoder->ffn.experts;
  qwen3_common(io, s);
  int64_t count = e.count, step = 1;
  io("num_experts", count, 128);
  io("num_local_experts", count, count);
  e.count = count;
  io("num_experts_per_tok", e.chosen, 8);
  io("moe_intermediate_size", e.width, 768);
  io("norm_topk_prob", e.normalise, false);
  io("router_aux_loss_coef", e.balance, 0.001f, 1e3f);
  io("mlp_only_layers", e.dense_layers);
  io("decoder_sparse_step", step, 1);
  for (int64_t i = 0; i < s.decoder->layers; ++i)
    if ((i + 1) % step != 0) e.dense_layers.push_back(i);
  if (io.reading()) io.refuse_unknown({});
}

const Names moe_names =
    llama_names() + Names{{"model.layers.{i}.mlp.gate.weight", "decoder.{i}.ffn.router.weight"},
                          {"model.layers.{i}.mlp.experts.{e}.{gate,up,down}_proj.weight",
                           "decoder.{i}.ffn.experts.{e}.{gate,up,down}.weight"}};

const Names moe_in_memory = {
    {"model.layers.{i}.mlp.experts.gate_up_proj", "decoder.{i}.ffn.experts.{e}.{gate+up}.weight",
     Stored::stacked},
    {"model.layers.{i}.mlp.experts.down_proj", "decoder.{i}.ffn.experts.{e}.down.weight",
     Stored::stacked},
};

}  // namespace

const Family qwen2 = {"qwen2", decoder_architectures("Qwen2", "Qwen2ForCausalLM"), qwen2_config,
                      with_own_prefix_of_answers(llama_names()), "model."};
const Family qwen3 = {"qwen3", decoder_architectures("Qwen3", "Qwen3ForCausalLM"), qwen3_config,
                      with_own_prefix_of_answers(llama_names()), "model."};
const Family qwen3_moe = {
    "qwen3_moe",      decoder_architectures("Qwen3Moe", "Qwen3MoeForCausalLM"),
    qwen3_moe_config, with_own_prefix_of_answers(moe_names),
    "model.",         {},
    moe_in_memory};

}  // namespace fovea::model
