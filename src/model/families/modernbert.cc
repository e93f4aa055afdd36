#include "families/bert.h"
#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// ModernBERT (Warner et al. 2024): rotary positions, local layers between global ones, GEGLU, norms
// on the sublayers' inputs.
void modernbert_config(Config& io, Spec& s) {
  if (!s.encoder) s.encoder.emplace();
  s.decoder.reset();
  StackSpec& e = *s.encoder;
  modernbert_sizes(io, s, e);
  io("classifier_bias", s.head.transform_bias, false);
  io("classifier_activation", s.head.activation, "gelu");
  if (s.head.kind == HeadKind::language_model) io("decoder_bias", s.head.bias, true);
  if (s.head.kind == HeadKind::sequence) {
    bool mean = s.head.pooling == Pooling::mean;
    if (const auto pooling = io.value("classifier_pooling"); pooling.is_string())
      mean = pooling.get<std::string>() == "mean";
    io.write("classifier_pooling", mean ? "mean" : "cls");
    s.head.pooling = mean ? Pooling::mean : Pooling::first;
  }
  modernbert_rope(io, s, e);

  int64_t seen = 128;  // number of keys on both sides of a query together
  for (const int64_t w : e.attention.windows) seen = w > 0 ? 2 * (w - 1) : seen;
  io("local_attention", seen, 128);
  io.layer_types(e, seen / 2 + 1, modernbert_pattern(io));
  if (io.reading())
    io.refuse_unknown({"classifier_pooling", "decoder_bias", "deterministic_flash_attn",
                       "sparse_pred_ignore_index", "sparse_prediction", "reference_compile",
                       "repad_logits_with_grad", "position_embedding_type", "layer_norm_eps"});
}

const Names modernbert_names = {
    {"model.embeddings.tok_embeddings.weight", "embedding.token"},
    {"model.embeddings.norm.{weight,bias}", "encoder.norm.embedding.{weight,bias}"},
    {"model.layers.{i}.attn.Wqkv.{weight,bias}",
     "encoder.{i}.attention.{query+key+value}.{weight,bias}"},
    {"model.layers.{i}.attn.Wo.{weight,bias}", "encoder.{i}.attention.output.{weight,bias}"},
    {"model.layers.{i}.{attn,mlp}_norm.{weight,bias}",
     "encoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
    {"model.layers.{i}.mlp.Wi.{weight,bias}", "encoder.{i}.ffn.{gate+up}.{weight,bias}"},
    {"model.layers.{i}.mlp.Wo.{weight,bias}", "encoder.{i}.ffn.down.{weight,bias}"},
    {"model.final_norm.{weight,bias}", "encoder.norm.final.{weight,bias}"},
    {"head.{dense,norm}.{weight,bias}", "head.{transform,norm}.{weight,bias}"},
    {"decoder.{weight,bias}", "head.output.{weight,bias}"},
    {"head.{dense,norm}.{weight,bias}", "sequence.{transform,norm}.{weight,bias}"},
    {"classifier.{weight,bias}", "sequence.output.{weight,bias}"},
    {"head.{dense,norm}.{weight,bias}", "tagger.{transform,norm}.{weight,bias}"},
    {"classifier.{weight,bias}", "tagger.output.{weight,bias}"},
    {"head.{dense,norm}.{weight,bias}", "span.{transform,norm}.{weight,bias}"},
    {"classifier.{weight,bias}", "span.output.{weight,bias}"},
};

HeadSpec labels(HeadKind kind) {
  return {.kind = kind, .labels = 2, .bias = true, .transform = true, .transform_norm = true};
}

}  // namespace

void modernbert_sizes(Config& io, Spec& s, StackSpec& stack) {
  stack.embedding_norm = true;
  stack.first_norm = false;
  stack.ffn.gated = true;
  stack.position.kind = PositionKind::rotary;
  io("vocab_size", s.vocabulary);
  io.padding(s, 50283);
  io("hidden_size", s.width);
  io("num_hidden_layers", stack.layers);
  io("num_attention_heads", stack.attention.heads);
  io("intermediate_size", stack.ffn.width);
  io("hidden_activation", stack.ffn.activation, "gelu");
  io("norm_eps", stack.norm.epsilon, 1e-5f);
  io("norm_bias", stack.norm.bias, false);
  io("attention_bias", stack.attention.bias, false);
  stack.attention.output_bias = stack.attention.bias;
  io("mlp_bias", stack.ffn.bias, false);
  io("attention_dropout", s.dropout.attention, 0);
  io("embedding_dropout", s.dropout.embedding, 0);
  io("mlp_dropout", s.dropout.residual, 0);
  io("tie_word_embeddings", s.head.tied, true);
}

void modernbert_rope(Config& io, Spec& s, StackSpec& stack) {
  RotarySpec& rotary = stack.position.rotary;
  const auto theta = io.value("global_rope_theta"), local = io.value("local_rope_theta");
  if (io.reading()) rotary.local_theta = local.is_number() ? local.get<float>() : 10000.0f;
  io.rope(s.context, rotary,
          {.context = 8192,
           .theta = theta.is_number() ? theta.get<float>() : 160000.0f,
           .by_layer_type = true});
}

std::vector<bool> modernbert_pattern(Config& io) {
  int64_t period = 3;
  if (io.reading()) io("global_attn_every_n_layers", period, 3);
  std::vector<bool> pattern(static_cast<size_t>(period), true);
  pattern.front() = false;
  return pattern;
}

const Family modernbert = {"modernbert",
                           {{"ModernBertForMaskedLM", masked_language_model()},
                            {"ModernBertModel", {.kind = HeadKind::pooled}},
                            {"ModernBertForSequenceClassification", labels(HeadKind::sequence)},
                            {"ModernBertForTokenClassification", labels(HeadKind::token)},
                            {"ModernBertForQuestionAnswering", labels(HeadKind::span)}},
                           modernbert_config,
                           modernbert_names,
                           "model."};

}  // namespace fovea::model
