#pragma once

// Small models that together use every field with its own code in an inspection.

#include <gtest/gtest.h>

#include "inspect/inspection.h"
#include "support/small_spec.h"

namespace fovea::study {

inline model::Spec small() {
  return test::small_decoder(
      {.vocabulary = 13, .context = 12, .width = 16, .layers = 3, .heads = 4});
}

// Returns Specs that together use every field that has its own code in walk() or map().
inline std::vector<std::pair<std::string, model::Spec>> kinds() {
  std::vector<std::pair<std::string, model::Spec>> all;
  all.emplace_back("plain", small());
  model::Spec grouped = small();
  grouped.decoder->attention.kv_heads = 2;
  grouped.decoder->attention.norm = model::QueryKeyNorm::head;
  grouped.decoder->position.kind = model::PositionKind::rotary;
  grouped.decoder->norm.kind = model::NormKind::rms;
  grouped.decoder->ffn.gated = true;
  grouped.decoder->attention.windows = {3, 0, 2};
  all.emplace_back("grouped, rotary, windows", grouped);
  model::Spec biased = small();
  biased.decoder->position = {.kind = model::PositionKind::none,
                              .bias = model::DistanceBias::alibi};
  biased.decoder->embedding_norm = true;
  biased.decoder->attention.softcap = 2;
  all.emplace_back("alibi, softcap", biased);
  model::Spec parallel = small();
  parallel.decoder->parallel = true;
  all.emplace_back("parallel", parallel);
  model::Spec residual = small();
  residual.decoder->attention.kv_heads = 2;
  residual.decoder->attention.value_residual = 0.4f;
  all.emplace_back("value residual", residual);
  model::Spec experts = small();
  experts.decoder->ffn.experts.count = 4;
  experts.decoder->ffn.experts.dense_layers = {1};
  all.emplace_back("experts", experts);
  model::Spec shared = small();
  shared.decoder->ffn.experts = {.count = 4,
                                 .score = model::ExpertScore::sigmoid,
                                 .selection_bias = true,
                                 .groups = 2,
                                 .shared = 1,
                                 .shared_gate = true};
  shared.decoder->placement = {false, false, true};
  shared.decoder->residual_scale = 1.5f;
  shared.decoder->norm.kind = model::NormKind::dyt;
  all.emplace_back("shared experts, deepnorm", shared);
  model::Spec encoder = small();
  encoder.encoder = encoder.decoder;
  encoder.decoder.reset();
  encoder.encoder->placement = {false, false, true};
  encoder.encoder->final_norm = false;
  encoder.token_types = 2;
  all.emplace_back("encoder, post-norm", encoder);
  model::Spec both = small();
  both.encoder = both.decoder;
  both.encoder->position = both.decoder->position = {.kind = model::PositionKind::none,
                                                     .bias = model::DistanceBias::relative};
  all.emplace_back("both, relative", both);
  model::Spec scaled = small();
  scaled.decoder->layer_scale = 0.3f;
  all.emplace_back("layer scale", scaled);
  model::Spec one = small();
  one.decoder->layer_groups = 1;
  all.emplace_back("layers with the same weights", one);
  return all;
}

inline Inspection inspection_of(const model::Transformer& model, const std::vector<int32_t>& source,
                                const std::vector<int32_t>& ids,
                                std::vector<model::HeadIndex> muted = {}) {
  return Inspection(std::make_unique<Inspection::State>(model, source, ids, std::move(muted)));
}

// With initial weights of deviation 0.02, all maps would be nearly uniform, and differences would
// be too small to detect.
inline void enlarge_weights(model::Transformer& model) {
  model.each([](const std::string&, model::Parameter& p) {
    if (p.role == model::Role::gain || p.role == model::Role::bias ||
        p.role == model::Role::tanh_scale)
      return;
    for (int64_t i = 0; i < p.value.size(); ++i) p.value.data_as<float>()[i] *= 12;
  });
}

}  // namespace fovea::study
