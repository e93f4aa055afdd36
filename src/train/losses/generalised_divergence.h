#pragma once

#include "ops/ops.h"

namespace fovea::train {

// What a student learns from a teacher's distribution p, with its own distribution q, both at a
// temperature, and their mixture m = beta p + (1 - beta) q: the generalised Jensen-Shannon
// divergence (Agarwal et al. 2024, "On-Policy Distillation of Language Models", eq. 1)
//   beta KL(p || m) + (1 - beta) KL(q || m),
// KL(p || q) for beta = 0 and KL(q || p) for beta = 1, as TRL's GKDTrainer defines it.
struct DivergenceOptions {
  double beta = 0.5, temperature = 1;
};

// Returns the sum of the divergences of R rows, added by the units of the rows. The classes that p
// does not list are one class. Rows whose classes are below 0 are ignored.
// logits [R, V], whose distribution is q -> f64 [1]
Tensor generalised_divergence(const Tensor& logits, const TopProbabilities& p,
                              const DivergenceOptions& options);

// Returns the most memory that it takes for R rows of V classes, k of which are listed, beside the
// logits and their gradient.
uint64_t divergence_bytes(int64_t rows, int64_t vocabulary, int64_t classes);

}  // namespace fovea::train
