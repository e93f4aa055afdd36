#pragma once

#include <vector>

#include "checkpoint/names.h"
#include "ops/packed.h"
#include "safetensors/safetensors.h"

namespace fovea::model {

// The tensors of a directory with MXFP4 weights (Open Compute Project 2023, "OCP Microscaling
// Formats (MX) Specification", 5.4) of experts, as gpt-oss has them. NAME_blocks u8 [E, M, K / 32,
// 16] has two values in a byte, the first one in the lower half, and NAME_scales u8 [E, M, K / 32]
// their exponents. Both appear as one tensor NAME [E, K, M], which is decoded to bf16, without a
// loss, when it is requested.
class Mxfp4Tensors : public TensorSource {
 public:
  // Throws BadFile if a tensor of blocks has no scales that fit. `path`: the directory, for errors.
  Mxfp4Tensors(SafeTensors file, const std::string& path);

  const std::vector<StoredTensor>& stored() const override { return stored_; }
  Tensor tensor(std::string_view name) const override;
  std::shared_ptr<const MappedFile> file_of(const StoredTensor& stored) const override {
    return file_.file_of(stored);
  }

 private:
  SafeTensors file_;
  std::vector<StoredTensor> stored_;
};

// Returns the parts of such a tensor, with the given `shapes`, packed late. Its parts alternate row
// by row (Stored::column_by_column).
std::vector<PackedWeight> mxfp4_from_file(const FileTensor& tensor, const StoredTensor& stored,
                                          const std::vector<Shape>& shapes,
                                          const TensorSource& file);

}  // namespace fovea::model
