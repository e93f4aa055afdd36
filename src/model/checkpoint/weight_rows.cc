#include "checkpoint/weight_rows.h"

#include <algorithm>

#include "base/half.h"
#include "safetensors/safetensors.h"

namespace fovea::model {
namespace {

void release_rows(const MappedFile* file, const Tensor& rows) {
  if (file != nullptr) file->release(static_cast<const char*>(rows.data()), rows.bytes());
}

// Widens column `first` + j of row c to to[j, c], for the rows c of matrix [C, M]. A few rows at a
// time: rows and columns are often as far apart as the CPU's caches map to the same place.
template <class T, class Widen>
void gather_columns(const Tensor& matrix, int64_t first, const Tensor& to, Widen&& widened) {
  constexpr int64_t kTogether = 8;
  const int64_t rows = matrix.dim(0), columns = matrix.dim(1), count = to.dim(0);
  float* out = to.data_as<float>();
  for (int64_t c = 0; c < rows; c += kTogether) {
    const T* from = matrix.data_as<T>() + c * columns + first;
    const int64_t together = std::min(kTogether, rows - c);
    for (int64_t j = 0; j < count; ++j)
      for (int64_t i = 0; i < together; ++i) out[j * rows + c + i] = widened(from[i * columns + j]);
  }
}

}  // namespace

int64_t TensorRows::pack(const PackedMatrix& part, int64_t first, void* panels,
                         uint16_t* scales) const {
  return pack_panels(part, matrix_.rows(first, first + part.outputs), 0, fovea::panels_of(part),
                     panels, scales);
}

int64_t TensorRows::count_nonfinite(const PackedMatrix&, int64_t first, int64_t count) const {
  return fovea::count_nonfinite(matrix_.rows(first, first + count));
}

void TensorRows::release(int64_t first, int64_t count) const {
  release_rows(file_.get(), matrix_.rows(first, first + count));
}

Tensor TensorColumns::rows(int64_t first, int64_t count) const {
  const Tensor y = empty({count, matrix_.dim(0)});
  if (matrix_.dtype() == DType::f32)
    gather_columns<float>(matrix_, first_ + first, y, [](float x) { return x; });
  else if (matrix_.dtype() == DType::bf16)
    gather_columns<bf16>(matrix_, first_ + first, y, widen);
  else
    gather_columns<uint16_t>(matrix_, first_ + first, y, widen_half);
  return y;
}

int64_t TensorColumns::pack(const PackedMatrix& part, int64_t first, void* panels,
                            uint16_t* scales) const {
  return pack_panels(part, rows(first, part.outputs), 0, panels_of(part), panels, scales);
}

int64_t TensorColumns::count_nonfinite(const PackedMatrix&, int64_t first, int64_t count) const {
  const Tensor flat = matrix_.view({matrix_.size()});
  int64_t nonfinite = 0;
  for (int64_t c = 0; c < matrix_.dim(0); ++c) {
    const int64_t begin = c * matrix_.dim(1) + first_ + first;
    nonfinite += fovea::count_nonfinite(flat.rows(begin, begin + count));
  }
  return nonfinite;
}

void TensorColumns::release(int64_t, int64_t count) const {
  released_ += count;
  if (released_ == count_) release_rows(file_.get(), matrix_);
}

int64_t QuantizedRows::pack(const PackedMatrix& part, int64_t first, void* panels,
                            uint16_t* scales) const {
  const Tensor rows = rows_.rows(first, first + part.outputs),
               row_scales = scales_.rows(first, first + part.outputs);
  pack_quantized(part, static_cast<const uint8_t*>(rows.data()), row_scales.data_as<uint16_t>(),
                 panels, scales);
  return 0;
}

void QuantizedRows::release(int64_t first, int64_t count) const {
  release_rows(file_.get(), rows_.rows(first, first + count));
}

int64_t FileBlocks::pack(const PackedMatrix& part, int64_t first, void* panels,
                         uint16_t* scales) const {
  return pack_panels(part, rows(first, part.outputs), 0, panels_of(part), panels, scales);
}

int64_t FileBlocks::count_nonfinite(const PackedMatrix& whole, int64_t first, int64_t count) const {
  return fovea::count_nonfinite(block_format(whole.format), rows(first, count), whole.width);
}

void FileBlocks::release(int64_t first, int64_t count) const {
  if (!file_ || count == 0) return;
  const auto begins = rows(first, count).begins;
  const auto [least, most] = std::minmax_element(begins.begin(), begins.end());
  file_->release(reinterpret_cast<const char*>(*least),
                 static_cast<size_t>(*most - *least + row_bytes_));
}

}  // namespace fovea::model
