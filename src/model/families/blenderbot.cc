#include "families/bart.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

// The keys that older files have, as this model needs them.
void blenderbot_variant(Config& io, bool norms_first) {
  for (const char* key : {"normalize_before", "add_final_layer_norm"}) io.only(key, norms_first);
  io.only("normalize_embedding", !norms_first);
  io.only("layernorm_variant", norms_first ? "prelayernorm" : "xlm");
  for (const char* key : {"static_position_embeddings", "add_bias_logits", "extra_layer_norm",
                          "force_bos_token_to_be_generated", "is_decoder"})
    io.only(key, false);
  if (io.reading())
    io.refuse_unknown({"num_hidden_layers", "extra_pos_embeddings", "prefix",
                       "do_blenderbot_90_layernorm", "unk_token_id"});
}

// Blenderbot (Roller et al. 2021): BART with norms on the sublayers' inputs.
void blenderbot_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.position = {.kind = PositionKind::learned};
  d.placement = {true, false, false};
  d.final_norm = true;
  bart_sizes(io, s);
  io.padding(s, 0);
  io("max_position_embeddings", s.context, 128);
  blenderbot_variant(io, true);
}

// Its model of 90 million parameters has the norms of BART, and the decoder's embeddings get theirs
// before the positions.
void blenderbot_small_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.position = {.kind = PositionKind::learned};
  d.placement = {false, false, true};
  d.embedding_norm = true;
  d.final_norm = false;
  bart_sizes(io, s);
  d.norm_before_positions = true;
  io.padding(s, 0);
  io("max_position_embeddings", s.context, 512);
  blenderbot_variant(io, false);
}

const Names blenderbot_names = bart_stack_names("encoder") + bart_stack_names("decoder") +
                               Names{{"model.shared.weight", "embedding.token"},
                                     {"final_logits_bias", "head.output.bias", Stored::batched},
                                     {"lm_head.weight", "head.output.weight"}};

}  // namespace

const Family blenderbot = {
    "blenderbot",      {{"BlenderbotForConditionalGeneration", {.bias = true}}},
    blenderbot_config, blenderbot_names,
    "model.",          {".embed_tokens.weight"}};
const Family blenderbot_small = {"blenderbot-small",
                                 {{"BlenderbotSmallForConditionalGeneration", {.bias = true}}},
                                 blenderbot_small_config,
                                 blenderbot_names,
                                 "model.",
                                 {".embed_tokens.weight"}};

}  // namespace fovea::model
