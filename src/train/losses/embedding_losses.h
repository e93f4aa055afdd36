#pragma once

// The objectives of embedders beside those of embed/losses.h, with the definitions and defaults of
// sentence-transformers. Letters: B examples, N negatives of each, C width, R pairs.

#include <optional>
#include <vector>

#include "tensor/tensor.h"

namespace fovea::train {

// The vectors of a step: anchors [B, C] and candidates [(1 + N) B, C], which are the positives of
// all examples, then their first negatives, and so on.
struct ExampleVectors {
  Tensor anchors, candidates;

  int64_t examples() const { return anchors.dim(0); }
  int64_t negatives() const { return candidates.dim(0) / anchors.dim(0) - 1; }
  Tensor candidates_of(int64_t column) const;  // [B, C]; 0: the positives
  Tensor repeated_anchors() const;             // [(1 + N) B, C], the anchors of the candidates
  Tensor own_products() const;  // [B, 1 + N]: the dot products of each anchor and its candidates
};

// The cosines of pairs of rows.   a, b [R, C] -> [R, 1]
Tensor pair_cosines(const Tensor& a, const Tensor& b);
// The similarities of AnglE (Li and Li 2024, equation 8, without the constant factor): |sum of the
// real and imaginary parts of z / w|, where the halves of the rows of a and b are the real and
// imaginary parts of z and w, divided by |z| / |w|. A missing last element is 0.
// a, b [R, C] -> [R, 1]
Tensor pair_angles(const Tensor& a, const Tensor& b);

// log(1 + sum over pairs i, j with scores[i] < scores[j] of exp((s_i - s_j) / temperature)), where
// s are the similarities [R, 1] (Huang et al. 2024, CoSENT). -> [1]
Tensor ordering_loss(const Tensor& similarities, const std::vector<float>& scores,
                     float temperature);

// The mean over all negatives of max(0, |a - p| - |a - n| + margin), with Euclidean distances of
// which each difference is increased by 1e-6, as in PyTorch's pairwise_distance(). -> [1]
Tensor triplet_loss(const ExampleVectors& x, float margin);

// The mean over all negatives of ((a . p - a . n) - margin)^2, where the margins [B, N] are those
// of a teacher (Hofstaetter et al. 2020, arXiv:2010.02666). -> [1]
Tensor margin_loss(const ExampleVectors& x, const std::vector<float>& margins);

// temperature^2 times the mean over the examples of KL(softmax(t / temperature) || softmax(s /
// temperature)) over the candidates of an example, whose dot products with the anchor are s and
// whose scores by a teacher are t, `scores` [B, 1 + N] (Lin et al. 2020, arXiv:2010.11386). -> [1]
Tensor list_loss(const ExampleVectors& x, const std::vector<float>& scores, float temperature);

// A negative is left out if its similarity to the anchor exceeds p - margin, or p - |p| margin if
// `relative`, where p is the similarity of the positive.
struct NegativeMargin {
  float margin = 0;
  bool relative = false;
};
// ranking_loss() without false negatives (Solatorio 2024, arXiv:2402.16829, GISTEmbed): the cosines
// of anchor i with all candidates and all anchors, and those of its positive with all positives,
// are the logits, except where the cosine of the same texts by the guide is beyond the margin. ->
// [1]
Tensor guided_loss(const ExampleVectors& x, const ExampleVectors& guide, float temperature,
                   const NegativeMargin& margin);

}  // namespace fovea::train
