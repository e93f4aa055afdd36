#pragma once

#include "fovea/model/spec.h"
#include "nn/norm.h"
#include "nn/parameter.h"
#include "nn/pass.h"

namespace fovea::model {

// The positions of a stack's tokens. Learned tables and sinusoids are added to the embeddings;
// rotations and relative position biases act inside attention.
struct Positions {
  PositionSpec spec;
  AttentionSpec attention;
  LatentSpec latent;
  int64_t context = 0;
  bool causal = false;
  Parameter table;  // [offset + context, C]: learned, or sinusoids stored in the checkpoint
  Parameter bias;   // [H, buckets]; of disentangled attention, vectors [buckets, C]
  std::vector<Parameter> layer_biases;  // [H, buckets] of each layer, instead of `bias`
  Norm bias_norm;                       // of the vectors

  Positions() = default;
  Positions(const StackSpec& stack, int64_t context, int64_t width, bool causal);

  // positions i32 [B, T]; empty = 0, 1, ... in every row.  x [B, T, C] -> [B, T, C]
  Tensor add_to(const Tensor& x, const Tensor& positions) const;
  // Sets the angles and the relative position bias of `pass` on a device, for T tokens or for the
  // cache's texts. They are computed on the host.
  void prepare(LayerPass& pass, int64_t T, const Tensor& positions,
               const Device& device = cpu_device()) const;

  // Sets the relative position bias of a layer, if it is not that of all layers. T as above.
  void prepare_layer(LayerPass& pass, int64_t layer, int64_t T, const Device& device) const;

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    visit(f, name + ".position", table);
    visit(f, name + ".distance", bias);
    for (size_t i = 0; i < layer_biases.size(); ++i)
      visit(f, name + "." + std::to_string(i) + ".distance", layer_biases[i]);
    bias_norm.each(f, name + ".norm.distance");
  }

 private:
  Tensor indices(const Tensor& x, const Tensor& positions) const;
  void prepare_angles(LayerPass& pass, int64_t T, const Tensor& positions,
                      const Device& device) const;
  void prepare_distances(LayerPass& pass, int64_t T) const;
  void prepare_bias(LayerPass& pass, int64_t T, const Parameter& values,
                    const Device& device) const;
  // Returns the biases [H, 2N - 1], or one such table per unit, for the distances key - query from
  // -(N - 1) to N - 1. The values of relative positions are [H, buckets].
  Tensor bias_by_distance(int64_t N, const Parameter& values) const;
};

// Returns the positions of tokens that count from 0 in each document: i32 [B, T].
Tensor positions_in_documents(const DocumentStarts& documents, int64_t T);

// Returns the sinusoids of the positions first, first + 1, ... [rows, C] (Vaswani et al. 2017,
// 3.5): sin and cos of p * f_i with f_i = 10000^(-2i / C), or 10000^(-i / (C/2 - 1)) for
// Waves::spread.
Tensor sinusoids(int64_t rows, int64_t width, Waves waves, int64_t first = 0);

// Returns the frequencies of the turned / 2 pairs, scaled for `length` tokens as the Spec requires.
std::vector<float> rotary_frequencies(const RotarySpec& spec, int64_t turned, int64_t length);
float rotary_attention_factor(const RotarySpec& spec);

// Returns the bucket of distance = key - query (Raffel et al. 2020): half of the buckets (of each
// sign, unless causal) hold single distances, the others logarithmic ranges up to `largest`.
int64_t distance_bucket(int64_t distance, bool causal, int64_t buckets, int64_t largest);

// Returns the row of the vector of distance = query - key, of `rows`, in disentangled attention (He
// et al. 2021, 3.1): half of the rows are for each sign. A quarter of them hold single distances,
// the others logarithmic ranges up to `largest` (of its second release); or, if rows / 2 = largest,
// each one distance.
int64_t distance_row(int64_t distance, int64_t rows, int64_t largest);

// Returns the slope of head h of H: 2^(-8 (h+1) / H) if H is a power of two (Press et al. 2022),
// else those of the power of two below H, followed by every second one of the power of two above H,
// as in the authors' code.
float alibi_slope(int64_t head, int64_t heads);

}  // namespace fovea::model
