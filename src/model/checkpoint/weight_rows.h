#pragma once

// Rows from which weights are packed: see WeightRows in ops/packed.h.

#include <atomic>
#include <memory>
#include <vector>

#include "base/files.h"
#include "ops/packed.h"

namespace fovea::model {

// The rows of an f32, bf16 or f16 matrix [N, C].
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

// Columns of a matrix [C, M] of f32, bf16 or f16 as the rows of weights: `count` from `first` on.
class TensorColumns : public WeightRows {
 public:
  TensorColumns(const Tensor& matrix, int64_t first, int64_t count,
                std::shared_ptr<const MappedFile> file)
      : matrix_(matrix), first_(first), count_(count), file_(std::move(file)) {}
  int64_t pack(const PackedMatrix& part, int64_t first, void* panels,
               uint16_t* scales) const override;
  int64_t count_nonfinite(const PackedMatrix& whole, int64_t first, int64_t count) const override;
  // Every page has numbers of every row, so that none are released before the last row.
  void release(int64_t first, int64_t count) const override;

 private:
  Tensor rows(int64_t first, int64_t count) const;  // f32 [count, C]

  Tensor matrix_;
  int64_t first_, count_;
  std::shared_ptr<const MappedFile> file_;
  mutable std::atomic<int64_t> released_ = 0;
};

// The quantised rows of a directory and their scales: see pack_quantized().
class QuantizedRows : public WeightRows {
 public:
  // rows i8 [N, C], or u8 [N, ceil(C/2)]; scales f16 [N, ceil(C/group)]. `file`: that of the rows.
  QuantizedRows(const Tensor& rows, const Tensor& scales, std::shared_ptr<const MappedFile> file)
      : rows_(rows), scales_(scales), file_(std::move(file)) {}
  int64_t pack(const PackedMatrix& part, int64_t first, void* panels,
               uint16_t* scales) const override;
  // Returns 0: the loader checks the scales.
  int64_t count_nonfinite(const PackedMatrix&, int64_t, int64_t) const override { return 0; }
  void release(int64_t first, int64_t count) const override;

 private:
  Tensor rows_, scales_;
  std::shared_ptr<const MappedFile> file_;
};

// The rows of a matrix in blocks of a file.
class FileBlocks : public WeightRows {
 public:
  // begins: the first block of each row, which has `row_bytes`; exponents: see BlockRows. `file`:
  // as above.
  FileBlocks(std::vector<const uint8_t*> begins, std::vector<const uint8_t*> exponents,
             const BlockReader& reader, int64_t row_bytes, std::shared_ptr<const MappedFile> file)
      : begins_(std::move(begins)),
        exponents_(std::move(exponents)),
        reader_(reader),
        row_bytes_(row_bytes),
        file_(std::move(file)) {}
  int64_t pack(const PackedMatrix& part, int64_t first, void* panels,
               uint16_t* scales) const override;
  int64_t count_nonfinite(const PackedMatrix& whole, int64_t first, int64_t count) const override;
  void release(int64_t first, int64_t count) const override;

 private:
  BlockRows rows(int64_t first, int64_t count) const {
    const auto begin = static_cast<size_t>(first), size = static_cast<size_t>(count);
    const std::span<const uint8_t* const> exponents = exponents_;
    return {std::span(begins_).subspan(begin, size), reader_,
            exponents.empty() ? exponents : exponents.subspan(begin, size)};
  }

  std::vector<const uint8_t*> begins_, exponents_;
  BlockReader reader_;
  int64_t row_bytes_;
  std::shared_ptr<const MappedFile> file_;
};

}  // namespace fovea::model
