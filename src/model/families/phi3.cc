#include "base/error.h"
#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

void refuse_scaling(Config& io) {
  const nlohmann::json now = io.value("rope_parameters"), old = io.value("rope_scaling");
  const nlohmann::json& given = now.is_null() ? old : now;
  const char* const key = now.is_null() ? "rope_scaling" : "rope_parameters";
  const char* const kind = given.contains("rope_type") ? "rope_type" : "type";
  const std::string name = given.is_object() ? given.value(kind, "") : "unknown";
  fail(ErrorKind::Unsupported, "{}: {}.{} is {} in a phi3 model; expected default or longrope",
       io.name(), key, kind, name);
}

// Phi 3 (Abdin et al. 2024): LLaMA with fused matrices, and longrope for its long variants.
void phi3_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  RotarySpec& rotary = d.position.rotary;
  int64_t original = rotary.original_context > 0 ? rotary.original_context : 4096;
  io("original_max_position_embeddings", original, 4096);
  llama_sizes(io, s, {.epsilon = 1e-5f, .original_context = original});
  if (rotary.scaling != RotaryScaling::none && rotary.scaling != RotaryScaling::longrope)
    refuse_scaling(io);
  window_of_all(io, d, 0);
  io("embd_pdrop", s.dropout.embedding, 0);
  io("resid_pdrop", s.dropout.residual, 0);
  if (io.reading()) io.refuse_unknown({});
}

const Names phi3_names = with_decoder_heads(
    {{"model.embed_tokens.weight", "embedding.token"},
     {"model.layers.{i}.self_attn.qkv_proj.weight",
      "decoder.{i}.attention.{query+key+value}.weight"},
     {"model.layers.{i}.self_attn.o_proj.weight", "decoder.{i}.attention.output.weight"},
     {"model.layers.{i}.{input,post_attention}_layernorm.weight",
      "decoder.{i}.norm.{attention,ffn}.input.weight"},
     {"model.layers.{i}.mlp.gate_up_proj.weight", "decoder.{i}.ffn.{gate+up}.weight"},
     {"model.layers.{i}.mlp.down_proj.weight", "decoder.{i}.ffn.down.weight"},
     {"model.norm.weight", "decoder.norm.final.weight"},
     {"lm_head.weight", "head.output.weight"}});

}  // namespace

const Family phi3 = {"phi3", decoder_architectures("Phi3", "Phi3ForCausalLM"), phi3_config,
                     phi3_names, "model."};

}  // namespace fovea::model
