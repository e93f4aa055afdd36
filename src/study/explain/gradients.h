#pragma once

// Attributions by gradients of the output with respect to the embeddings of the tokens.

#include <optional>
#include <vector>

#include "explain/output.h"

namespace fovea::study {

// Returns, for each token t, the sum over c of g[t, c] * e[t, c], where e are the embeddings of the
// tokens, without token types and positions, and g the gradient of the output (Shrikumar et al.
// 2017, 2.2). If the decoder of an encoder-decoder reads the text too, a token has the sum over
// both positions.
std::vector<double> gradient_input(const ExplainedOutput& output, const ExplainedText& text);

struct IntegratedGradients {
  std::vector<double> scores;
  double baseline_value = 0;
};
// Integrated gradients (Sundararajan et al. 2017, eq. 1) from a baseline x' to the embeddings x:
//   scores[t] = sum over c of (x - x')[t, c] * the integral over a in [0, 1] of g at x' + a (x -
//   x')
// by the midpoint rule with `steps` points. In the baseline, the text's own tokens are the token
// `baseline`, or vectors of zeros if it is unset.
IntegratedGradients integrated_gradients(const ExplainedOutput& output, const ExplainedText& text,
                                         std::optional<int32_t> baseline, int64_t steps);

}  // namespace fovea::study
