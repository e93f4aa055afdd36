#pragma once

#include "lab/experiment.h"

namespace fovea::lab {

// Each is in the file of its name in contrib/lab/experiments/.
Experiment speed(), quality(), recall(), gradient_distance(), crossover(), norm_placement(),
    residuals(), norm(), no_positions(), extrapolation(), leaking_mask(), masked_weights(),
    rotary_distance(), score_variance(), saturation(), wide_head(), head_loop(), long_context(),
    pooling(), small_model(), induction(), head_removal(), neurons(), worked_steps(), emergence(),
    scaling(), operations();

}  // namespace fovea::lab
