#pragma once

#include <map>
#include <string>

#include "tensor/tensor.h"

namespace fovea {

// Returns copies of the tensors in an untrusted file that torch.save() has written of a state dict,
// by their names: a zip archive of a pickle, which runs nothing (state_pickle.h), and of the
// elements. f32, f16 and bf16. Throws BadFile if the file is damaged, and Unsupported if it has
// anything else, or a tensor that is a part of another one or transposed.
std::map<std::string, Tensor> read_torch_file(const std::string& path);

}  // namespace fovea
