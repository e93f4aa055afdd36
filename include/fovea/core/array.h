#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea {

// The type in which numbers are stored. f64 is for gradient checks, on the reference kernels only.
// f16, i8 and u8 occur only in files, packed weights, the key-value cache and compact vectors.
enum class DType : uint8_t { f32, bf16, f64, f16, i32, i64, i8, u8 };

// A read-only view of a contiguous, row-major array. It does not own the elements: it is valid
// until the object that returned it is changed or destroyed. Safe to read from several threads.
struct ArrayView {
  const void* data = nullptr;
  std::vector<int64_t> shape;  // slowest axis first
  DType dtype = DType::f32;

  int64_t size() const;  // number of elements
  // Returns the elements as T: float, int8_t or uint8_t. Throws InvalidArgument if this is not the
  // type of `dtype`.
  template <class T>
  std::span<const T> elements() const;
  // Returns row `i` of [..., C], where the leading axes count as rows. Throws InvalidArgument if
  // there is no such row, and the errors of elements().
  template <class T>
  std::span<const T> row(int64_t i) const;
};

}  // namespace fovea
