#pragma once

// Rearrangement of bits and words for packed panels, with AVX2.

#include <immintrin.h>

#include <algorithm>

#include "kernels/layout/lines.h"

namespace fovea {

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

// Returns the bits of four numbers of 2 bits for each byte: the two bits from `shift` of `u`[f] in
// bits 2 f and 2 f + 1.
inline uint32_t quarters(const uint8_t* u, int shift) {
  const __m128i bits = _mm_srli_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(u)), shift);
  __m128i v = _mm_and_si128(bits, _mm_set1_epi8(3));
  v = _mm_sllv_epi32(v, _mm_setr_epi32(0, 2, 4, 6));
  v = _mm_or_si128(v, _mm_shuffle_epi32(v, 0x4e));
  v = _mm_or_si128(v, _mm_shuffle_epi32(v, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(v));
}

// Returns bit `shift` of u[t] in bit t, for each of 8 numbers for each byte.
inline uint32_t eighths(const uint8_t* u, int shift) {
  const __m256i bits =
      _mm256_srli_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(u)), shift);
  const __m256i each = _mm256_sllv_epi32(_mm256_and_si256(bits, _mm256_set1_epi8(1)),
                                         _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m128i v = _mm_or_si128(_mm256_castsi256_si128(each), _mm256_extracti128_si256(each, 1));
  v = _mm_or_si128(v, _mm_shuffle_epi32(v, 0x4e));
  v = _mm_or_si128(v, _mm_shuffle_epi32(v, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(v));
}

// Writes 32 numbers of 4 bits to 16 bytes: the first 16 to the lower halves of the bytes.
inline void join_nibbles(const uint8_t* numbers, uint32_t* to) {
  const auto* from = reinterpret_cast<const __m128i*>(numbers);
  const __m128i lower = _mm_and_si128(_mm_loadu_si128(from), _mm_set1_epi8(15));
  const __m128i upper = _mm_and_si128(_mm_loadu_si128(from + 1), _mm_set1_epi8(15));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_or_si128(lower, _mm_slli_epi16(upper, 4)));
}

// Writes bytes [16][16] to `to` [count][16], transposed: each round of four interleaves row i with
// row i + 8.
inline void put_columns(const uint8_t* bytes, int64_t count, uint8_t* to) {
  __m128i rows[16], next[16];
  for (int i = 0; i < 16; ++i)
    rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * i));
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 8; ++i) {
      next[2 * i] = _mm_unpacklo_epi8(rows[i], rows[i + 8]);
      next[2 * i + 1] = _mm_unpackhi_epi8(rows[i], rows[i + 8]);
    }
    std::copy_n(next, 16, rows);
  }
  for (int64_t i = 0; i < count; ++i)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16 * i), rows[i]);
}

}  // namespace fovea
