#pragma once

#include <cstdint>

#include "fovea/core/array.h"
#include "fovea/core/options.h"

namespace fovea::train {

// The rule by which gradients change the weights (docs/training.md, Optimisers). adamw: Loshchilov
// and Hutter 2019. sgd: gradient descent with momentum (Sutskever et al. 2013). lion: Chen et al.
// 2023. adafactor: Shazeer and Stern 2018. muon: Jordan et al. 2024, for the matrices of the
// layers; all other parameters are updated by AdamW.
enum class OptimizerKind { adamw, sgd, lion, adafactor, muon };

// Memory of the two moments of each trained number in AdamW: fp32 = 8 bytes; bits8 = 2 bytes, as
// fractions of the largest of a block of 256 (cf. Dettmers et al. 2022).
enum class MomentPrecision { fp32, bits8 };

// The factor of Muon's step for a matrix [N, C]. adamw: 0.2 sqrt(max(N, C)), so that the steps are
// as large as AdamW's (Liu et al. 2025, eq. 4); spectral: sqrt(max(1, N / C)) (Jordan et al. 2024).
enum class MuonScale { adamw, spectral };

// The optimiser, and what only some of them use.
struct OptimizerChoice {
  OptimizerKind kind = OptimizerKind::adamw;
  double momentum = 0.95;  // sgd, muon: decay rate of the sum of earlier gradients
  bool nesterov = true;    // sgd, muon: add the gradient to the momentum again
  MuonScale muon_scale = MuonScale::adamw;
  // muon: learning rate of the matrices of the layers, as a multiple of that of other parameters
  double muon_rate = 1;
  // adafactor: multiply the learning rate by the root mean square of each parameter (at least 1e-3)
  bool relative_rate = true;
};

// All settings of an optimiser but the learning rate.
struct OptimizerOptions {
  double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;
  double weight_decay = 0.1;    // of the parameters that decay
  double clip = 1.0;            // maximum norm of all gradients together; 0 = unlimited
  bool packed_moments = false;  // AdamW: see MomentPrecision
  uint64_t seed = 0;            // of the rounding of packed moments
  double up_rate = 1;           // factor of the learning rate of the matrices B of adapters
  DType products = DType::f32;  // Muon: of the factors of its products, f32 or bf16
  OptimizerChoice choice = {};
};

void visit(OptimizerChoice& options, OptionVisitor& visitor);  // fovea/core/options.h

}  // namespace fovea::train
