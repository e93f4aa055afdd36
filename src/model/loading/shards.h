#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace fovea::model {

using Shards = std::vector<std::vector<std::string>>;  // the names of the tensors of each file

// Fills one file after the other, in the order of the names, with at most `most_bytes`, but at
// least one tensor. `taken`: numbers of files that the result does not have, as long as one of its
// files can be divided.
Shards shards_of(const std::map<std::string, Tensor>& tensors, uint64_t most_bytes,
                 const std::set<size_t>& taken = {});

// Writes model.safetensors, or, if the tensors have more than `most_bytes`, files
// model-00001-of-0000N.safetensors and their index, as transformers does. They replace the model of
// the folder in a single step: a reader, or a crash, finds the old model or the new one. The old
// files are then removed.
void write_weights(const std::string& folder, const std::map<std::string, Tensor>& tensors,
                   uint64_t most_bytes);

}  // namespace fovea::model
