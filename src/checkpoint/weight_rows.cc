#include "checkpoint/weight_rows.h"

#include <algorithm>

#include "checkpoint/safetensors.h"

namespace fovea {

int64_t TensorRows::pack(const PackedMatrix& part, int64_t first, void* panels,
                         uint16_t* scales) const {
  return pack_panels(part, matrix_.rows(first, first + part.outputs), 0, fovea::panels_of(part),
                     panels, scales);
}

int64_t TensorRows::count_nonfinite(const PackedMatrix&, int64_t first, int64_t count) const {
  return fovea::count_nonfinite(matrix_.rows(first, first + count));
}

void TensorRows::release(int64_t first, int64_t count) const {
  if (!file_) return;
  const Tensor rows = matrix_.rows(first, first + count);
  file_->release(static_cast<const char*>(rows.data()), rows.bytes());
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

}  // namespace fovea
