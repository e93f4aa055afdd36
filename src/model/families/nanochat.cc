#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// nanochat (Karpathy 2025): norms without gains, also of the embeddings and, after their rotation,
// of queries and keys; squared ReLU; capped logits. It rotates backwards.
void nanochat_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.activation = "relu2"});
  d.norm.gain = false;
  d.embedding_norm = true;
  d.attention.norm = QueryKeyNorm::head;
  d.attention.norm_rotated = true;
  d.ffn.gated = false;
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  float cap = s.head.softcap;
  if (!io.reading() && cap == 0)
    io.write("final_logit_softcapping", nullptr);
  else
    io("final_logit_softcapping", cap, io.says("final_logit_softcapping") ? 0 : 15, 1e6f);
  if (s.head.kind == HeadKind::language_model) s.head.softcap = cap;
  if (io.reading()) io.refuse_unknown({});
}

const Names nanochat_names = {
    {"model.embed_tokens.weight", "embedding.token"},
    {"model.layers.{i}.self_attn.{q,k}_proj.{weight,bias}",
     "decoder.{i}.attention.{query,key}.{weight,bias}", Stored::swapped_halves},
    {"model.layers.{i}.self_attn.{v,o}_proj.{weight,bias}",
     "decoder.{i}.attention.{value,output}.{weight,bias}"},
    {"model.layers.{i}.mlp.fc{1,2}.weight", "decoder.{i}.ffn.{up,down}.weight"},
    {"lm_head.weight", "head.output.weight"}};

}  // namespace

const Family nanochat = {"nanochat", language_models("NanoChat"), nanochat_config, nanochat_names,
                         "model."};

}  // namespace fovea::model
