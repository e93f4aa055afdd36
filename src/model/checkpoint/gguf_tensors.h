#pragma once

#include <memory>
#include <vector>

#include "base/ggml_file.h"
#include "base/gguf.h"
#include "safetensors/tensor_source.h"

namespace fovea::model {

// The tensors of a GGUF file, or of an older file of ggml. F32, F16 and BF16 are read from the
// mapping; blocks are decoded to f32 when a tensor is requested.
class GgufTensors : public TensorSource {
 public:
  explicit GgufTensors(const std::shared_ptr<const Gguf>& file);
  explicit GgufTensors(const GgmlFile& file);

  // Adds a tensor of zeros, f32, which the file does not have.
  void add_zeros(const std::string& name, const Shape& shape);

  const std::vector<StoredTensor>& stored() const override { return stored_; }
  Tensor tensor(std::string_view name) const override;
  std::shared_ptr<const MappedFile> file_of(const StoredTensor& stored) const override {
    return files_[stored.file];
  }

 private:
  void add(const std::vector<GgufTensor>& tensors);

  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<StoredTensor> stored_;
};

}  // namespace fovea::model
