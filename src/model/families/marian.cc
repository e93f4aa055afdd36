#include "families/bart.h"
#include "families/registry.h"

namespace fovea::model {

// Marian (Junczys-Dowmunt et al. 2018): the original Transformer, whose sinusoids have all sines
// before the cosines.
void marian_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.position = {.kind = PositionKind::sinusoidal, .waves = Waves::halves};
  d.placement = {false, false, true};
  d.final_norm = false;
  bart_sizes(io, s);
  io("max_position_embeddings", s.context, 1024);
  bool shared = s.source_vocabulary == 0;
  io("share_encoder_decoder_embeddings", shared, true);
  int64_t source = s.source_vocabulary == 0 ? s.vocabulary : s.source_vocabulary;
  if (!io.reading()) {
    io.write("vocab_size", source);  // the encoder's, if the vocabularies differ
    io.write("decoder_vocab_size", s.vocabulary);
  } else if (!shared) {
    source = s.vocabulary;
    io("decoder_vocab_size", s.vocabulary, source);
    s.source_vocabulary = source;
  }
  io.only("static_position_embeddings", true);
  for (const char* key :
       {"normalize_before", "normalize_embedding", "add_final_layer_norm", "is_decoder"})
    io.only(key, false);
  if (io.reading())
    io.refuse_unknown({"num_hidden_layers", "add_bias_logits", "classif_dropout",
                       "extra_pos_embeddings", "decoder_vocab_size", "prefix"});
}

const Family marian = {
    "marian",
    {{"MarianMTModel", {.bias = true}}},
    marian_config,
    bart_stack_names("encoder") + bart_stack_names("decoder") +
        Names{{"model.shared.weight", "embedding.token", Stored::plain,
               [](const Spec& s) { return s.source_vocabulary == 0; }},
              {"model.{decoder,encoder}.embed_tokens.weight", "embedding.{token,source}"},
              {"final_logits_bias", "head.output.bias", Stored::batched},
              {"lm_head.weight", "head.output.weight"}},
    "model.",
    {".embed_tokens.weight", ".embed_positions.weight"}};

}  // namespace fovea::model
