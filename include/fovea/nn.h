#pragma once

// Layers, their parameters, and optimisers, on the tensors of fovea/core.h.

#include "fovea/core.h"
#include "fovea/nn/layers.h"
#include "fovea/nn/optimizer.h"
#include "fovea/nn/parameter.h"
#include "fovea/nn/transformer.h"
