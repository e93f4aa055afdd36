#pragma once

// Rows from which weights are packed: see WeightRows in ops/packed.h.

#include <memory>
#include <vector>

#include "base/files.h"
#include "ops/packed.h"

namespace fovea {

// The rows of an f32 or bf16 matrix [N, C].
class TensorRows : public WeightRows {
 public:
  // `file`: the file that the matrix is mapped from; null if it is in memory.
  TensorRows(const Tensor& matrix, std::shared_ptr<const MappedFile> file)
      : matrix_(matrix), file_(std::move(file)) {}
  int64_t pack(const PackedMatrix& part, int64_t first, void* panels,
               uint16_t* scales) const override;
  int64_t count_nonfinite(const PackedMatrix& whole, int64_t first, int64_t count) const override;
  void release(int64_t first, int64_t count) const override;

 private:
  Tensor matrix_;
  std::shared_ptr<const MappedFile> file_;
};

// The rows of a matrix in the blocks of a GGUF file.
class FileBlocks : public WeightRows {
 public:
  // begins: the first block of each row, which has `row_bytes`. `file`: as above.
  FileBlocks(std::vector<const uint8_t*> begins, const BlockReader& reader, int64_t row_bytes,
             std::shared_ptr<const MappedFile> file)
      : begins_(std::move(begins)),
        reader_(reader),
        row_bytes_(row_bytes),
        file_(std::move(file)) {}
  int64_t pack(const PackedMatrix& part, int64_t first, void* panels,
               uint16_t* scales) const override;
  int64_t count_nonfinite(const PackedMatrix& whole, int64_t first, int64_t count) const override;
  void release(int64_t first, int64_t count) const override;

 private:
  BlockRows rows(int64_t first, int64_t count) const {
    return {std::span(begins_).subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
            reader_};
  }

  std::vector<const uint8_t*> begins_;
  BlockReader reader_;
  int64_t row_bytes_;
  std::shared_ptr<const MappedFile> file_;
};

}  // namespace fovea
