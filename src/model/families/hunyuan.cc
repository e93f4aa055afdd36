#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Hunyuan (Tencent 2025): LLaMA with norms of queries and keys after their rotation.
void hunyuan_v1_dense_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.epsilon = 1e-5f, .alpha = true});
  d.attention.norm = QueryKeyNorm::head;
  d.attention.norm_rotated = true;
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  for (const char* key : {"add_classification_head", "use_cla", "position_embedding_xdrope"})
    io.only(key, false);
  for (const char* key : {"use_qk_norm", "use_rotary_pos_emb"}) io.only(key, true);
  if (io.reading())
    io.refuse_unknown(
        {"attention_head_dim",  "cla_share_factor", "class_num",    "dense_list",
         "enable_lm_head_fp32", "eod_token_id",     "im_end_id",    "im_newline_id",
         "im_start_id",         "image_token_id",   "mask_init_id", "norm_type",
         "num_media_embeds",    "org_vocab_size",   "pad_id",       "pool_type",
         "text_end_id",         "text_start_id",    "video_end_id", "video_start_id"});
}

}  // namespace

const Family hunyuan_v1_dense = {
    "hunyuan_v1_dense", decoder_architectures("HunYuanDenseV1", "HunYuanDenseV1ForCausalLM"),
    hunyuan_v1_dense_config,
    Names{{"model.layers.{i}.self_attn.{query,key}_layernorm.weight",
           "decoder.{i}.attention.{query,key}_norm.weight"}} +
        llama_names(),
    "model."};

}  // namespace fovea::model
