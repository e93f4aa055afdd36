// Every key of every family's config.json is honoured, harmless or refused: a change of its value
// changes the Spec, has no effect for a reason that is listed, or is an error.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/settings.h"
#include "families/registry.h"
#include "support/shared_folder.h"

namespace fovea::model {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Harmless {
  const char* why;
  std::set<std::string> keys;
};
// Keys that a family reads, or names as known, although no change of them, in the directories
// below, affects the results. Those of all families are in settings.inc.
const std::vector<Harmless> kHarmless = {
    {"an older spelling, which newer keys of the same file override",
     {"rope_theta", "partial_rotary_factor", "_sliding_window_pattern", "sliding_window_pattern",
      "global_attn_every_n_layers", "no_rope_layer_interval", "attention_layers", "mlp_only_layers",
      "moe_every_n_layers", "num_kv_heads", "num_key_value_heads",
      "original_max_position_embeddings", "glm4_moe_lite:first_k_dense_replace"}},
    {"layers with windows, which the file lists or does not have",
     {"sliding_window", "use_sliding_window", "max_window_layers"}},
    {"what follows from the parts of a head of latent attention",
     {"qk_head_dim", "deepseek_v2:head_dim", "deepseek_v3:head_dim", "glm4_moe_lite:head_dim"}},
    {"the layer after the last one", {"moe_layer_end_index", "num_nextn_predict_layers"}},
    {"heads that the class of the file does not have",
     {"summary_activation", "summary_first_dropout", "summary_last_dropout",
      "summary_proj_to_labels", "summary_type", "summary_use_proj", "classifier_pooling",
      "classifier_proj_size", "classifier_dropout_prob", "seq_classif_dropout", "qa_dropout",
      "pooler_act", "pooler_dropout", "pooler_hidden_act", "pooler_output_size", "encoder_stride",
      "tie_word_embeddings", "legacy"}},
    {"what dinov2's class of feature maps returns",
     {"apply_layernorm", "out_features", "out_indices", "reshape_hidden_states", "stage_names"}},
    {"the training of transformers",
     {"apply_spec_augment", "mask_feature_length", "mask_feature_min_masks", "mask_feature_prob",
      "mask_time_length", "mask_time_min_masks", "mask_time_prob", "drop_path_rate", "emb_pdrop",
      "init_device", "sinusoidal_pos_embds", "sparse_pred_ignore_index", "sparse_prediction",
      "use_mask_token"}},
    {"how a result is computed or stored",
     {"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "reorder_and_upcast_attn",
      "slow_but_exact", "batch_first", "chunk_size", "mamba_chunk_size", "num_logits_to_keep",
      "residual_in_fp32"}},
    {"the first values and the losses of a training",
     {"rescale_prenorm_residual", "time_step_floor", "time_step_max", "time_step_min",
      "time_step_rank", "z_loss_coefficient", "linear_a_log_max", "linear_a_log_min",
      "linear_dt_init_floor", "linear_dt_max", "linear_dt_min"}},
    {"keys that the class of transformers does not read either",
     {"attn_logit_softcapping", "embedding_fraction", "expansion_ratio", "learned_pos_emb",
      "norm_type", "n_ctx", "eod_token_id", "is_decoder", "whisper:scale_embedding"}},
    {"the variant of SwiGLU or of one norm, which ignores them",
     {"dinov2:hidden_act", "num_ln_in_parallel_attn"}},
    {"a table of the same size, whose tensors have other names",
     {"decoder_vocab_size", "share_encoder_decoder_embeddings"}},
    {"rounded up to the same multiple of 256",
     {"lfm2:block_ffn_dim_multiplier", "lfm2:intermediate_size"}},
    {"experts, which one of the files does not have",
     {"granitemoehybrid:intermediate_size", "granitemoehybrid:num_experts_per_tok",
      "granitemoehybrid:router_aux_loss_coef"}},
    {"times of words, which transcription reads", {"median_filter_width"}}};

// Returns the directories with a config.json of a known family.
std::vector<std::string> folders() {
  std::vector<std::string> all;
  for (const std::string& root : {std::string("tests/goldens"), shared("fixtures/models"),
                                  shared("fixtures/models2"), shared("fixtures/models3")}) {
    if (!fs::is_directory(root)) continue;
    for (const auto& entry : fs::directory_iterator(root))
      if (fs::exists(entry.path() / "config.json")) all.push_back(entry.path().string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

const Family* family_of(const Json& config) {
  const Json type = config.is_object() ? config.value("model_type", Json()) : Json();
  for (const Family* family : families())
    if (type == family->model_type) return family;
  return nullptr;
}

Spec spec_of(const Json& config, const Family& family) {
  Spec spec;
  Config reader(config, "config.json");
  describe(reader, family, spec);
  return spec;
}

// Returns the keys that the family's function writes, which include those that it reads.
std::set<std::string> own_keys(const Family& family, Spec spec) {
  Config writer;
  try {
    describe(writer, family, spec);
  } catch (const Error&) {  // a family that is only read
    return {};
  }
  std::set<std::string> keys;
  for (const auto& [key, value] : writer.written().items()) keys.insert(key);
  return keys;
}

// Returns other values of the same kind.
std::vector<Json> others(const Json& value) {
  if (value.is_boolean()) return {!value.get<bool>()};
  if (value.is_number_integer()) return {value.get<int64_t>() + 1, 2 * value.get<int64_t>() + 2};
  if (value.is_number()) return {value.get<double>() / 2 + 0.125, value.get<double>() / 4};
  if (value.is_string()) return {"another_name", "relu", "gelu"};
  if (value.is_array()) {
    Json shorter = value, turned = value;
    if (!shorter.empty()) shorter.erase(shorter.size() - 1);
    std::reverse(turned.begin(), turned.end());
    return {shorter, turned};
  }
  if (!value.is_object()) return {true, 3, 0.25, "another_name"};  // null, or the key is missing
  std::vector<Json> all;
  for (const auto& [key, inner] : value.items()) {
    for (const Json& other : others(inner)) {
      all.push_back(value);
      all.back()[key] = other;
    }
  }
  return all;
}

enum class Outcome { honoured, refused, none };

Outcome outcome_of(const Json& config, const Family& family, const std::string& before) {
  try {
    return write_spec(spec_of(config, family)) == before ? Outcome::none : Outcome::honoured;
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::Internal) << error.what();
    return Outcome::refused;
  }
}

bool is_listed(const std::string& key, const Family& family) {
  return std::any_of(kHarmless.begin(), kHarmless.end(), [&](const Harmless& each) {
    return each.keys.contains(key) ||
           each.keys.contains(std::string(family.model_type) + ":" + key);
  });
}

// Returns the keys of a config that are read, or allowed, without an effect.
std::vector<std::string> silent_keys(const Json& config, const Family& family) {
  const Spec spec = spec_of(config, family);
  const std::string before = write_spec(spec);
  std::set<std::string> keys = own_keys(family, spec);
  for (const auto& [key, value] : config.items()) keys.insert(key);
  std::vector<std::string> silent;
  for (const std::string& key : keys) {
    if (key == "model_type" || key == "architectures") continue;
    bool known = false, changes = false;
    for (const Json& other : others(config.value(key, Json()))) {
      if (is_harmless("config.json", key, other)) continue;
      known = true;
      Json changed = config;
      changed[key] = other;
      changes = changes || outcome_of(changed, family, before) != Outcome::none;
    }
    if (known && !changes && !is_listed(key, family)) silent.push_back(key);
  }
  return silent;
}

TEST(ConfigKeys, AreHonouredHarmlessOrRefused) {
  std::set<std::string> seen;
  for (const std::string& folder : folders()) {
    const Json config = read_json(folder + "/config.json");
    const Family* const family = family_of(config);
    if (family == nullptr || family == &fovea_format) continue;
    seen.insert(family->model_type);
    SCOPED_TRACE(folder);
    EXPECT_EQ(fmt::format("{}", fmt::join(silent_keys(config, *family), ", ")), "");
  }
  EXPECT_GT(seen.size(), 20u);
}

// A key that no family knows is an error that names it.
TEST(ConfigKeys, AreRefusedByNameIfNoFamilyKnowsThem) {
  for (const std::string& folder : folders()) {
    Json config = read_json(folder + "/config.json");
    const Family* const family = family_of(config);
    if (family == nullptr || family == &fovea_format) continue;
    config["use_everything"] = true;
    try {
      spec_of(config, *family);
      ADD_FAILURE() << folder;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("use_everything"), std::string::npos) << folder;
    }
  }
}

}  // namespace
}  // namespace fovea::model
