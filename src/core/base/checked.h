#pragma once

// Arithmetic on sizes that come from a file or an option: throws where plain arithmetic would
// overflow.

#include <concepts>
#include <string_view>

#include "base/error.h"

namespace fovea {

// `what` is the beginning of the error message: the file, and the part of the file whose size is
// computed.
template <std::integral T>
T checked_multiply(T a, T b, std::string_view what, ErrorKind kind = ErrorKind::BadFile) {
  T product;
  if (__builtin_mul_overflow(a, b, &product)) {
    fail(kind, "{}: the size overflows ({} x {}); expected a size that fits into memory", what, a,
         b);
  }
  return product;
}

template <std::integral T>
T checked_add(T a, T b, std::string_view what, ErrorKind kind = ErrorKind::BadFile) {
  T sum;
  if (__builtin_add_overflow(a, b, &sum)) {
    fail(kind, "{}: the size overflows ({} + {}); expected a size that fits into memory", what, a,
         b);
  }
  return sum;
}

// Returns a / b, rounded up, for a >= 0 and b > 0; a + b may overflow.
template <std::integral T>
constexpr T divide_up(T a, T b) {
  return a / b + (a % b > 0 ? 1 : 0);
}

}  // namespace fovea
