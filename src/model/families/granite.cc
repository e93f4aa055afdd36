#include "base/error.h"
#include "base/json.h"
#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Granite 3 (IBM 2024): LLaMA with factors of the embeddings, of the scores, of the sublayers'
// outputs and of the logits.
void granite_shape(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  io("embedding_multiplier", s.embedding_scale, 1, 1e6f);
  io("attention_multiplier", d.attention.scale, 1, 1e6f);
  io("residual_multiplier", d.sublayer_scale, 1, 1e6f);
  float divisor = 1 / s.head.scale;
  io("logits_scaling", divisor, 1, 1e6f);
  if (s.head.kind == HeadKind::language_model) s.head.scale = 1 / divisor;
}

void granite_config(Config& io, Spec& s) {
  granite_shape(io, s);
  io("mlp_bias", s.decoder->ffn.bias, false);
  if (io.reading()) io.refuse_unknown({});
}

void experts(Config& io, ExpertsSpec& e) {
  io("num_local_experts", e.count, 8);
  io("num_experts_per_tok", e.chosen, 2);
  io("router_aux_loss_coef", e.balance, 0.001f, 1e3f);
}

void granitemoe_experts(Config& io, Spec& s) {
  granite_shape(io, s);
  experts(io, s.decoder->ffn.experts);
}

void granitemoe_config(Config& io, Spec& s) {
  granitemoe_experts(io, s);
  if (io.reading()) io.refuse_unknown({});
}

// Reads or writes an expert that all tokens use.
void shared_expert(Config& io, ExpertsSpec& e) {
  const nlohmann::json width = io.value("shared_intermediate_size");
  const bool none = io.reading() ? width.is_null() || width == 0 : e.shared == 0;
  if (none)
    io.write("shared_intermediate_size", 0);
  else
    io("shared_intermediate_size", e.shared_width);
  if (io.reading()) e.shared = none ? 0 : 1;
}

void granitemoeshared_config(Config& io, Spec& s) {
  granitemoe_experts(io, s);
  shared_expert(io, s.decoder->ffn.experts);
  if (io.reading()) io.refuse_unknown({});
}

// Granite 4 (IBM 2025): Mamba-2 in most layers instead of attention, which has no positions then.
// Without experts, the feed-forward layers are called shared experts.
void granitemoehybrid_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  ExpertsSpec& e = d.ffn.experts;
  const bool rotary = d.position.kind == PositionKind::rotary;
  granite_shape(io, s);
  mixers_by_type(
      io, d, MixerKind::state_space, "mamba", [](int64_t) { return false; }, "attention");
  state_space_beside_attention(io, s);
  const bool dense = io.reading() ? io.value("num_local_experts") == 0 : e.count == 0;
  if (dense) {
    io.write("num_local_experts", 0);
    io("shared_intermediate_size", d.ffn.width, 1024);
  } else {
    experts(io, e);
    shared_expert(io, e);
  }
  constexpr const char* kPositions = "position_embedding_type";
  const nlohmann::json positions = io.value(kPositions);
  if (!positions.is_null() && positions != "rope" && positions != "nope")
    fail(ErrorKind::Unsupported, "{}: {} is {}; expected rope or nope", io.name(), kPositions,
         brief(positions));
  if (!io.reading()) return io.write(kPositions, rotary ? "rope" : "nope");
  if (positions != "rope") d.position = {.kind = PositionKind::none};
  io.only("normalization_function", "rmsnorm");
  io.refuse_unknown(kStateSpaceKeys);
}

const Names granitemoe_names =
    llama_attention_names() +
    Names{
        {"model.layers.{i}.{input,post_attention}_layernorm.weight",
         "decoder.{i}.norm.{attention,ffn}.input.weight"},
        {"model.layers.{i}.block_sparse_moe.router.layer.weight", "decoder.{i}.ffn.router.weight"},
        {"model.layers.{i}.block_sparse_moe.input_linear.weight",
         "decoder.{i}.ffn.experts.{e}.{gate+up}.weight", Stored::stacked},
        {"model.layers.{i}.block_sparse_moe.output_linear.weight",
         "decoder.{i}.ffn.experts.{e}.down.weight", Stored::stacked},
        {"model.layers.{i}.shared_mlp.input_linear.weight",
         "decoder.{i}.ffn.shared.{gate+up}.weight"},
        {"model.layers.{i}.shared_mlp.output_linear.weight", "decoder.{i}.ffn.shared.down.weight"}};

const Names granitemoehybrid_names =
    granitemoe_names +
    Names{{"model.layers.{i}.shared_mlp.input_linear.weight", "decoder.{i}.ffn.{gate+up}.weight"},
          {"model.layers.{i}.shared_mlp.output_linear.weight", "decoder.{i}.ffn.down.weight"}} +
    state_space_names("model.layers.{i}.mamba.");

const Names granitemoe_in_memory = {
    {"model.layers.{i}.block_sparse_moe.router.weight", "decoder.{i}.ffn.router.weight"},
    {"model.layers.{i}.block_sparse_moe.experts.gate_up_proj",
     "decoder.{i}.ffn.experts.{e}.{gate+up}.weight", Stored::stacked},
    {"model.layers.{i}.block_sparse_moe.experts.down_proj",
     "decoder.{i}.ffn.experts.{e}.down.weight", Stored::stacked}};

}  // namespace

const Family granite = {"granite", language_models("Granite"), granite_config, llama_names(),
                        "model."};
const Family granitemoe = {
    "granitemoe", language_models("GraniteMoe"), granitemoe_config, granitemoe_names, "model.",
    {},           granitemoe_in_memory};
const Family granitemoeshared = {"granitemoeshared",
                                 language_models("GraniteMoeShared"),
                                 granitemoeshared_config,
                                 granitemoe_names,
                                 "model.",
                                 {},
                                 granitemoe_in_memory};

const Family granitemoehybrid = {"granitemoehybrid",
                                 language_models("GraniteMoeHybrid"),
                                 granitemoehybrid_config,
                                 granitemoehybrid_names,
                                 "model.",
                                 {},
                                 granitemoe_in_memory};

}  // namespace fovea::model
