#pragma once

// Quantised weights in safetensors: a matrix [N, K] is I8 [N, K], or U8 [N, K/2] with two weights
// per byte (see kernels/layout/packed.h), under its usual name; NAME_scale is F16 [N, K/group].
// Quotients are rounded up. The outputs are the first axis, even if the family transposes.
// config.json has "quantization_config":
// {"quant_method": "fovea", "bits": 8 or 4, "group_size": 32 or 64, or 0 for one scale per row
// (int8)}.

#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/names.h"
#include "safetensors/safetensors.h"

namespace fovea::model {

struct Quantization {
  WeightFormat format = WeightFormat::int8;  // format of most matrices; the head may have more bits
  int64_t group = 32;                        // 0 = the whole row
};

// Removes quantization_config from a config.json and returns its value; unset if it is missing.
// `path` is the file's path. Throws Unsupported if the file names a different method than fovea's,
// BadFile if a number is invalid.
std::optional<Quantization> take_quantization(nlohmann::json& config, const std::string& path);
nlohmann::ordered_json quantization_json(const Quantization& quantization);

// Throws BadFile if an element is not finite: integers with a scale cannot represent NaN, and one
// infinite element would change its entire group. `model` is the model of the tensor, for errors.
void check_quantizable(const std::string& model, const std::string& name, const Tensor& values);
// The same for `size` elements of which `nonfinite` are not finite.
void check_quantizable(const std::string& model, const std::string& name, int64_t nonfinite,
                       int64_t size);

std::string scale_name(const std::string& tensor);

// Returns the parts of a tensor, with the given `shapes`, which are packed late if their rows are
// those of the file. `stored` is its I8 or U8 tensor. Throws
// BadFile naming `folder` if the tensor does not fit the shapes, or its scales are missing or do
// not fit.
std::vector<PackedWeight> quantized_from_file(const FileTensor& tensor, const TensorSource& file,
                                              const StoredTensor& stored,
                                              const std::vector<Shape>& shapes, int64_t group,
                                              const std::string& folder);

// The inverse of quantized_from_file(): adds a tensor and its scales to a file's tensors.
void quantized_to_file(const FileTensor& tensor, const std::vector<PackedWeight>& parts,
                       std::map<std::string, Tensor>& tensors);

// Returns whether tensors of this layout can be quantised: plain, transposed, by_head and stacked
// ones.
bool can_be_quantized(const FileTensor& tensor);

}  // namespace fovea::model
