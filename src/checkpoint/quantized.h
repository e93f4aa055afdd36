#pragma once

// Quantised weights in safetensors: a matrix [N, K] is I8 [N, K], or U8 [N, K/2] of which each
// holds two (packed.h), under the name that it would have, and beside it NAME_scale, F16 [N,
// K/group]. All lie with the outputs in front, also where the family transposes. config.json says
// so under "quantization_config": {"quant_method": "fovea", "bits": 8 or 4, "group_size": 32 or
// 64}.

#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/names.h"
#include "checkpoint/safetensors.h"

namespace fovea {

struct Quantization {
  WeightFormat format = WeightFormat::int8;  // of most matrices: those of the head may be finer
  int64_t group = 32;
};

// Takes the key out of a config.json. Unsupported if another program's method made the file,
// BadFile for impossible numbers. `path` is the file's.
std::optional<Quantization> take_quantization(nlohmann::json& config, const std::string& path);
nlohmann::ordered_json quantization_json(const Quantization& quantization);

// BadFile where an element is not finite: whole numbers with a scale have no NaN, and one infinite
// element would take its whole group along. `model` is what the tensor belongs to.
void check_quantizable(const std::string& model, const std::string& name, const Tensor& values);

std::string scale_name(const std::string& tensor);

// The parts of a tensor, of these shapes. `stored` is its I8 or U8 tensor. BadFile naming `folder`
// where it does not fit the shapes, or its scales are missing or do not.
std::vector<PackedWeight> quantized_from_file(const FileTensor& tensor, const TensorSource& file,
                                              const StoredTensor& stored,
                                              const std::vector<Shape>& shapes, int64_t group,
                                              const std::string& folder);

// The way back: adds a tensor and its scales to a file's.
void quantized_to_file(const FileTensor& tensor, const std::vector<PackedWeight>& parts,
                       std::map<std::string, Tensor>& tensors);

// Whether a tensor's parts can be kept in quantised form: convolutions cannot, for their shape.
bool can_be_quantized(const FileTensor& tensor);

}  // namespace fovea
