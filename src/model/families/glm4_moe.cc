#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// GLM 4.5 (GLM-4.5 Team 2025): the experts of DeepSeek-V3, rotary positions for a part of each
// head. Its files may have a layer that predicts a further token.
void glm4_moe_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.epsilon = 1e-5f, .kv_heads = 8, .rotary_share = 0.5f});
  io("attention_bias", d.attention.bias, false);
  bool normed = d.attention.norm == QueryKeyNorm::head;
  io("use_qk_norm", normed, false);
  d.attention.norm = normed ? QueryKeyNorm::head : QueryKeyNorm::none;
  grouped_experts(io, d, {.count = 128, .chosen = 8, .shared = 1, .dense = 1, .normalise = true});
  if (io.reading())
    io.refuse_unknown({"num_local_experts", "num_nextn_predict_layers", "num_mtp_layers"});
}

}  // namespace

const Family glm4_moe = {"glm4_moe",
                         language_models("Glm4Moe"),
                         glm4_moe_config,
                         llama_names() + expert_names() + grouped_expert_names(),
                         "model.",
                         {},
                         expert_names_in_memory(),
                         false,
                         nullptr,
                         false,
                         true};

}  // namespace fovea::model
