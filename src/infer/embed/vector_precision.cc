#include <algorithm>
#include <cmath>

#include "base/dtype.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "fovea/infer/embed.h"

namespace fovea::infer {
namespace {

// Scales the vector so that its largest magnitude becomes 127.
void scale_to_bytes(const float* x, int64_t width, bool is_signed, uint8_t* y) {
  float largest = 0;
  for (int64_t i = 0; i < width; ++i) largest = std::max(largest, std::abs(x[i]));
  const float factor = largest > 0 ? 127.0f / largest : 0.0f;
  for (int64_t i = 0; i < width; ++i) {
    const auto level = static_cast<int>(std::lround(x[i] * factor));
    y[i] = static_cast<uint8_t>(is_signed ? level : level + 128);
  }
}

void pack_signs(const float* x, int64_t width, bool is_signed, uint8_t* y) {
  for (int64_t byte = 0; 8 * byte < width; ++byte) {
    int bits = 0;
    for (int64_t i = 8 * byte; i < std::min(width, 8 * byte + 8); ++i)
      if (x[i] > 0) bits |= 0x80 >> (i % 8);
    y[byte] = static_cast<uint8_t>(is_signed ? bits - 128 : bits);
  }
}

}  // namespace

int64_t bytes_of_vector(int64_t width, VectorPrecision precision) {
  switch (precision) {
    case VectorPrecision::float32: return 4 * width;
    case VectorPrecision::int8:
    case VectorPrecision::uint8: return width;
    case VectorPrecision::binary:
    case VectorPrecision::ubinary: break;
  }
  return (width + 7) / 8;
}

DType dtype_of(VectorPrecision precision) {
  switch (precision) {
    case VectorPrecision::float32: return DType::f32;
    case VectorPrecision::int8:
    case VectorPrecision::binary: return DType::i8;
    case VectorPrecision::uint8:
    case VectorPrecision::ubinary: break;
  }
  return DType::u8;
}

CompactVectors quantise_vectors(const ArrayView& vectors, VectorPrecision precision) {
  const FloatMode mode;
  check(vectors.shape.size() == 2, "vectors: {} axes; expected 2", vectors.shape.size());
  const float* values = vectors.elements<float>().data();
  const int64_t count = vectors.shape[0], width = vectors.shape[1];
  const int64_t size = bytes_of_vector(width, precision);
  CompactVectors compact;
  compact.dtype = dtype_of(precision);
  compact.shape = {count, size / static_cast<int64_t>(size_of(compact.dtype))};
  compact.bytes.resize(static_cast<size_t>(count * size));
  for (int64_t i = 0; i < count; ++i) {
    const float* x = values + i * width;
    uint8_t* y = compact.bytes.data() + i * size;
    switch (precision) {
      case VectorPrecision::float32:
        std::copy_n(reinterpret_cast<const uint8_t*>(x), size, y);
        break;
      case VectorPrecision::int8: scale_to_bytes(x, width, true, y); break;
      case VectorPrecision::uint8: scale_to_bytes(x, width, false, y); break;
      case VectorPrecision::binary: pack_signs(x, width, true, y); break;
      case VectorPrecision::ubinary: pack_signs(x, width, false, y); break;
    }
  }
  return compact;
}

}  // namespace fovea::infer
