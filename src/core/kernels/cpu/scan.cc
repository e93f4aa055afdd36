// Comparisons of one query with rows that are read once from memory, which limits their speed.

#include "kernels/scan.h"

#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/scan.cc"
#include <hwy/foreach_target.h>

#include "kernels/cpu/bytes-inl.h"
#if HWY_ARCH_X86
#include "kernels/cpu/byte_dots_x86-inl.h"
#else
#include "kernels/cpu/byte_dots_arm-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void scan_dots(float* y, const float* x, int64_t rows, int64_t width, const float* query) {
  for (int64_t r = 0; r < rows; ++r, x += width) {
    Sum sum;
    each_vector(width, [&](int64_t i, int64_t part, auto access) HWY_ATTR {
      sum.add_product(access.load(x + i), access.load(query + i), part, access);
    });
    y[r] = sum.total();
  }
}

void scan_squared_distances(float* y, const float* x, int64_t rows, int64_t width,
                            const float* query) {
  for (int64_t r = 0; r < rows; ++r, x += width) {
    Sum sum;
    each_vector(width, [&](int64_t i, int64_t part, auto access) HWY_ATTR {
      const Vector difference = hn::Sub(access.load(x + i), access.load(query + i));
      sum.add_product(difference, difference, part, access);
    });
    y[r] = sum.total();
  }
}

// Two sums hide a part of the latency of the products.
template <class Dot>
HWY_INLINE void scan_bytes(int32_t* y, const uint8_t* x, int64_t rows, int64_t width,
                           const int8_t* query) {
  constexpr int64_t kBytes = 4 * kLanes;  // of a vector
  const Bytes bytes;
  const hn::Repartition<int8_t, Wholes> factors;
  int32_t whole = 0;
  for (int64_t i = 0; i < width; ++i) whole += query[i];
  const int32_t start = Dot::start(-128 * whole);
  const auto add = [&](WholeVector sum, const uint8_t* from, const int8_t* q) HWY_ATTR {
    return Dot::add(sum, Dot::prepared(hn::LoadU(bytes, from)),
                    hn::BitCast(Wholes(), hn::LoadU(factors, q)));
  };
  for (int64_t r = 0; r < rows; ++r, x += width) {
    WholeVector one = hn::Zero(Wholes()), other = hn::Zero(Wholes());
    int64_t i = 0;
    for (; i + 2 * kBytes <= width; i += 2 * kBytes) {
      one = add(one, x + i, query + i);
      other = add(other, x + i + kBytes, query + i + kBytes);
    }
    for (; i < width; i += kBytes) one = add(one, x + i, query + i);
    y[r] = start + sum_of_lanes(Wholes(), hn::Add(one, other));
  }
}

void scan_byte_dots(int32_t* y, const uint8_t* x, int64_t rows, int64_t width,
                    const int8_t* query) {
  with_byte_dot([&]<template <WeightFormat> class Dot>()
                    HWY_ATTR { scan_bytes<Dot<WeightFormat::int8>>(y, x, rows, width, query); });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/isa.h"

namespace fovea {
namespace cpu {

HWY_EXPORT(scan_dots);
HWY_EXPORT(scan_squared_distances);
HWY_EXPORT(scan_byte_dots);

namespace {

void dots(float* y, const float* x, int64_t rows, int64_t width, const float* query) {
  HWY_DYNAMIC_DISPATCH(scan_dots)(y, x, rows, width, query);
}

void squared_distances(float* y, const float* x, int64_t rows, int64_t width, const float* query) {
  HWY_DYNAMIC_DISPATCH(scan_squared_distances)(y, x, rows, width, query);
}

void byte_dots(int32_t* y, const uint8_t* x, int64_t rows, int64_t width, const int8_t* query) {
  // Without VNNI, bytes are multiplied 256 bits at a time, as in packed_linear_with.
  if (byte_products() == ByteProducts::pairs)
    return HWY_STATIC_DISPATCH(scan_byte_dots)(y, x, rows, width, query);
  HWY_DYNAMIC_DISPATCH(scan_byte_dots)(y, x, rows, width, query);
}

// The instruction that counts the bits of 64 is part of the baseline and faster than memory.
void bit_distances(int32_t* y, const uint8_t* x, int64_t rows, int64_t width,
                   const uint8_t* query) {
  const auto word = [](const uint8_t* from) {
    uint64_t bits;
    std::memcpy(&bits, from, sizeof bits);
    return bits;
  };
  for (int64_t r = 0; r < rows; ++r, x += width) {
    int32_t differ = 0;
    for (int64_t i = 0; i < width; i += 8) differ += std::popcount(word(x + i) ^ word(query + i));
    y[r] = differ;
  }
}

}  // namespace
}  // namespace cpu

const ScanKernels& scan_kernels() {
  static const ScanKernels kernels = {cpu::dots, cpu::squared_distances, cpu::byte_dots,
                                      cpu::bit_distances};
  return instruction_set() == "reference" ? reference_scan_kernels() : kernels;
}

}  // namespace fovea
#endif
