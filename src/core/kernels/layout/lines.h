#pragma once

// The lines of packed panels: 64 bytes, 4 for each of 16 outputs.

#include <immintrin.h>

#include <algorithm>

#include "kernels/layout/packed.h"

namespace fovea {

constexpr int64_t kLineBytes = 4 * kPanelOutputs;

// Writes words [16][stride], of which each row has `count`, to lines of 16 words.
inline void interleave(const uint32_t* words, int64_t stride, int64_t count, uint8_t* to) {
  for (int64_t line = 0; line < count; line += 4) {
    const int64_t end = std::min<int64_t>(4, count - line);
    for (int64_t lane = 0; lane < kPanelOutputs; lane += 8) {
      // Row i in the lower half of a vector, row i + 4 in the upper half.
      const auto two_rows = [&](int64_t i) {
        const uint32_t* row = words + (lane + i) * stride + line;
        return _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(row + 4 * stride),
                                   reinterpret_cast<const __m128i*>(row));
      };
      const __m256i r0 = two_rows(0), r1 = two_rows(1), r2 = two_rows(2), r3 = two_rows(3);
      const __m256i a = _mm256_unpacklo_epi32(r0, r1), b = _mm256_unpacklo_epi32(r2, r3);
      const __m256i c = _mm256_unpackhi_epi32(r0, r1), d = _mm256_unpackhi_epi32(r2, r3);
      const __m256i lines[4] = {_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b),
                                _mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d)};
      for (int64_t i = 0; i < end; ++i)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + (line + i) * kLineBytes + lane * 4),
                            lines[i]);
    }
  }
}

}  // namespace fovea
