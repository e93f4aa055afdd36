#pragma once

#include "tensor/tensor.h"

namespace fovea::train {

// Returns the loss of B images and their texts, whose cosines are multiplied by exp(scale): f64
// [1]. Without a bias, the mean of the cross-entropies of the text of each image and of the
// image of each text (Radford et al. 2021, figure 3). With a bias, that of B x B independent
// pairs, divided by B (Zhai et al. 2023, eq. 1).
// images, texts [B, C], of any lengths; scale [1], bias [1] or empty
Tensor contrastive_loss(const Tensor& images, const Tensor& texts, const Tensor& scale,
                        const Tensor& bias);

}  // namespace fovea::train
