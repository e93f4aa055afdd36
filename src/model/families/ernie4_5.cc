#include <algorithm>

#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// ERNIE 4.5 (Baidu 2025): LLaMA that rotates pairs of neighbours.
void ernie4_5_common(Config& io, Spec& s, int64_t kv_heads, int64_t head_width) {
  llama_sizes(io, s,
              {.theta = 500000,
               .epsilon = 1e-5f,
               .tied = true,
               .kv_heads = kv_heads,
               .head_width = head_width});
  s.decoder->position.rotary.neighbours = true;
}

void ernie4_5_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  ernie4_5_common(io, s, 2, 128);
  io("use_bias", d.attention.bias, false);
  d.attention.output_bias = d.ffn.bias = d.attention.bias;
  if (io.reading()) io.refuse_unknown({});
}

// Reads a whole number, which may be negative.
int64_t whole_number_of(Config& io, const char* key, int64_t absent) {
  const nlohmann::json value = io.value(key);
  if (!value.is_number_integer()) io.only(key, nullptr);
  return value.is_number_integer() ? value.get<int64_t>() : absent;
}

// Every `interval`-th layer from the first to the last has experts.
void ernie_expert_layers(Config& io, StackSpec& d) {
  auto& dense = d.ffn.experts.dense_layers;
  std::vector<int64_t> with;
  for (int64_t i = 0; i < d.layers; ++i)
    if (std::find(dense.begin(), dense.end(), i) == dense.end()) with.push_back(i);
  if (!io.reading()) {
    io.write("moe_layer_start_index", with.empty() ? d.layers : with.front());
    io.write("moe_layer_end_index", with.empty() ? d.layers : with.back());
    return io.write("moe_layer_interval", with.size() < 2 ? 1 : with[1] - with[0]);
  }
  const int64_t start = whole_number_of(io, "moe_layer_start_index", 1),
                end = whole_number_of(io, "moe_layer_end_index", -1);
  int64_t interval = 1;
  io("moe_layer_interval", interval, 1);
  for (int64_t i = 0; i < d.layers; ++i)
    if ((i + 1) % interval != 0 || i < start || (end != -1 && i > end)) dense.push_back(i);
}

// The choice of experts by their softmax and a bias; beside them, experts that all tokens use.
void ernie4_5_moe_config(Config& io, Spec& s) {
  ExpertsSpec& e = s.decoder->ffn.experts;
  ernie4_5_common(io, s, 4, 0);
  io.only("use_bias", false);
  io("moe_num_experts", e.count, 64);
  io("moe_k", e.chosen, 6);
  io("moe_intermediate_size", e.width, 1536);
  io("moe_num_shared_experts", e.shared, 2);
  io("router_aux_loss_coef", e.balance, 0.001f, 1e3f);
  io.only("moe_norm_min", 1e-12);
  e.selection_bias = true;
  ernie_expert_layers(io, *s.decoder);
  if (io.reading())
    io.refuse_unknown({"moe_capacity", "moe_gate", "moe_use_aux_free", "num_nextn_predict_layers"});
}

const Names ernie4_5_moe_names =
    llama_names() + expert_names() +
    Names{{"model.layers.{i}.mlp.moe_statics.e_score_correction_bias",
           "decoder.{i}.ffn.router.selection_bias", Stored::batched},
          {"model.layers.{i}.mlp.shared_experts.{gate,up,down}_proj.weight",
           "decoder.{i}.ffn.shared.{gate,up,down}.weight"}};

}  // namespace

const Family ernie4_5 = {"ernie4_5", language_models("Ernie4_5"), ernie4_5_config, llama_names(),
                         "model."};
const Family ernie4_5_moe = {"ernie4_5_moe",
                             language_models("Ernie4_5_Moe"),
                             ernie4_5_moe_config,
                             ernie4_5_moe_names,
                             "model.",
                             {},
                             expert_names_in_memory()};

}  // namespace fovea::model
