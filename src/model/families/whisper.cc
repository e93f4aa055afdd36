#include "families/bart.h"
#include "families/registry.h"

namespace fovea::model {

// Whisper (Radford et al. 2022): a spectrogram through two convolutions, sinusoids in the encoder,
// norms on the sublayers' inputs, keys without biases.
void whisper_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.position.kind = PositionKind::learned;
  d.attention.key_bias = false;
  bart_sizes(io, s);
  s.scaled_embedding = false;  // transformers reads scale_embedding but does not use it
  s.encoder->position = {.kind = PositionKind::sinusoidal, .waves = Waves::spread, .stored = true};
  s.input.kind = InputKind::audio;
  io("num_mel_bins", s.input.bins, 80);
  io("max_source_positions", s.input.frames, 1500);
  io("max_target_positions", s.context, 448);
  io.only("use_weighted_layer_sum", false);
  if (io.reading())
    io.refuse_unknown({"num_hidden_layers", "apply_spec_augment", "mask_feature_length",
                       "mask_feature_min_masks", "mask_feature_prob", "mask_time_length",
                       "mask_time_min_masks", "mask_time_prob", "median_filter_width",
                       "classifier_proj_size"});
}

const Family whisper = {"whisper",
                        {{"WhisperForConditionalGeneration", {}}},
                        whisper_config,
                        bart_stack_names("encoder") + bart_stack_names("decoder") +
                            Names{{"model.decoder.embed_tokens.weight", "embedding.token"},
                                  {"model.encoder.conv{1,2}.{weight,bias}",
                                   "input.convolution.{0,1}.{weight,bias}", Stored::convolution},
                                  {"proj_out.weight", "head.output.weight"}},
                        "model."};

}  // namespace fovea::model
