#include "fovea/core/array.h"

#include "base/dtype.h"
#include "base/error.h"

namespace fovea {
namespace {

template <class T>
constexpr DType kTypeOf = DType::f32;
template <>
constexpr DType kTypeOf<int8_t> = DType::i8;
template <>
constexpr DType kTypeOf<uint8_t> = DType::u8;

}  // namespace

int64_t ArrayView::size() const {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  return shape.empty() ? 0 : size;
}

template <class T>
std::span<const T> ArrayView::elements() const {
  check(dtype == kTypeOf<T>, "array: its elements are {}; expected {}", name_of(dtype),
        name_of(kTypeOf<T>));
  return {static_cast<const T*>(data), static_cast<size_t>(size())};
}

template <class T>
std::span<const T> ArrayView::row(int64_t i) const {
  const std::span<const T> all = elements<T>();
  const int64_t width = shape.empty() ? 0 : shape.back(), rows = width > 0 ? size() / width : 0;
  check(0 <= i && i < rows, "array: row {} of {}; expected a row of the array", i, rows);
  return all.subspan(static_cast<size_t>(i * width), static_cast<size_t>(width));
}

template std::span<const float> ArrayView::elements() const;
template std::span<const int8_t> ArrayView::elements() const;
template std::span<const uint8_t> ArrayView::elements() const;
template std::span<const float> ArrayView::row(int64_t) const;
template std::span<const int8_t> ArrayView::row(int64_t) const;
template std::span<const uint8_t> ArrayView::row(int64_t) const;

}  // namespace fovea
