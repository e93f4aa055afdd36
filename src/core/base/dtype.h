#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fovea/core/array.h"  // DType

namespace fovea {

std::string_view name_of(DType dtype);  // as in fovea's options and messages: "fp32", "bf16", ...

// Bytes of one element.
constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
    case DType::f16: return 2;
    case DType::f32:
    case DType::i32: return 4;
    case DType::f64:
    case DType::i64: return 8;
    case DType::i8:
    case DType::u8: return 1;
  }
  return 0;
}

// The upper half of a float: the same range with 8 bits of precision.
struct bf16 {
  uint16_t bits = 0;
};

constexpr float widen(bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

// Rounds to nearest, ties to even; a NaN stays a (quiet) NaN.
constexpr bf16 narrow(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bf16{static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return bf16{static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

}  // namespace fovea
