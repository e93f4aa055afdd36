#include "families/bart.h"
#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

// Sets the placement of the norms of the models below: on the sublayers' inputs and at the end.
void norms_first(StackSpec& d) {
  d.placement = {true, false, false};
  d.final_norm = true;
}

// mBART (Liu et al. 2020): BART with norms on the sublayers' inputs.
void mbart_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  norms_first(d);
  d.position = {.kind = PositionKind::learned, .offset = 2};
  d.embedding_norm = true;
  bart_sizes(io, s);
  io("max_position_embeddings", s.context, 1024);
  for (const char* key : {"normalize_before", "add_final_layer_norm", "normalize_embedding"})
    io.only(key, true);
  for (const char* key : {"static_position_embeddings", "add_bias_logits", "is_decoder"})
    io.only(key, false);
  if (io.reading()) io.refuse_unknown({"num_hidden_layers", "extra_pos_embeddings", "prefix"});
}

// M2M-100 and NLLB (Fan et al. 2021, NLLB Team 2022): sinusoids that begin after the row of the
// padding token.
void m2m_100_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  norms_first(d);
  io.padding(s, 1);
  d.position = {.kind = PositionKind::sinusoidal, .offset = s.padding + 1, .waves = Waves::spread};
  bart_sizes(io, s);
  io("max_position_embeddings", s.context, 1024);
  for (const char* key : {"normalize_before", "add_final_layer_norm"}) io.only(key, true);
  for (const char* key : {"normalize_embedding", "add_bias_logits", "is_decoder"})
    io.only(key, false);
  if (io.reading()) io.refuse_unknown({"num_hidden_layers", "static_position_embeddings"});
}

// PEGASUS (Zhang et al. 2020): sinusoids with all sines before the cosines, which most files leave
// out.
void pegasus_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  norms_first(d);
  d.position = {.kind = PositionKind::sinusoidal, .waves = Waves::halves, .stored = true};
  bart_sizes(io, s);
  io("max_position_embeddings", s.context, 1024);
  for (const char* key : {"normalize_before", "add_final_layer_norm", "static_position_embeddings"})
    io.only(key, true);
  for (const char* key : {"normalize_embedding", "add_bias_logits", "is_decoder"})
    io.only(key, false);
  if (io.reading()) io.refuse_unknown({"num_hidden_layers", "extra_pos_embeddings", "prefix"});
}

const Names mbart_names = bart_stack_names("encoder") + bart_stack_names("decoder") +
                          Names{{"model.shared.weight", "embedding.token"},
                                {"final_logits_bias", "head.output.bias", Stored::batched},
                                {"lm_head.weight", "head.output.weight"},
                                {"qa_outputs.{weight,bias}", "span.output.{weight,bias}"}} +
                          names_of_head_of_end();

}  // namespace

const Family mbart = {"mbart",
                      {{"MBartForConditionalGeneration", {.bias = true}},
                       {"MBartForSequenceClassification", head_of_end(3)},
                       {"MBartForQuestionAnswering", answer_span()}},
                      mbart_config,
                      mbart_names,
                      "model.",
                      {".embed_tokens.weight"},
                      {},
                      false,
                      nullptr,
                      true};
const Family m2m_100 = {"m2m_100",      {{"M2M100ForConditionalGeneration", {}}},
                        m2m_100_config, mbart_names,
                        "model.",       {".embed_tokens.weight", ".embed_positions.weights"}};
const Family pegasus = {"pegasus",      {{"PegasusForConditionalGeneration", {.bias = true}}},
                        pegasus_config, mbart_names,
                        "model.",       {".embed_tokens.weight", ".embed_positions.weight"}};

}  // namespace fovea::model
