#pragma once

// The core: tensors, differentiable ops, gradients, random numbers, files of tensors. docs/core.md
// builds a GPT from it.

#include "fovea/core/autograd.h"
#include "fovea/core/error.h"
#include "fovea/core/ops.h"
#include "fovea/core/random.h"
#include "fovea/core/safetensors.h"
#include "fovea/core/tensor.h"
