#pragma once

#include "tensor/tensor.h"

namespace fovea::train {

// Returns the loss of B pictures and their texts, whose cosines are multiplied by exp(scale): f64
// [1]. Without a bias, the mean of the cross-entropies of the text of each picture and of the
// picture of each text (Radford et al. 2021, figure 3). With a bias, that of B x B independent
// pairs, divided by B (Zhai et al. 2023, eq. 1).
// pictures, texts [B, C], of any lengths; scale [1], bias [1] or empty
Tensor contrastive_loss(const Tensor& pictures, const Tensor& texts, const Tensor& scale,
                        const Tensor& bias);

}  // namespace fovea::train
