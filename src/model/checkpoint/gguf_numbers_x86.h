#pragma once

// 32 numbers of a byte each, from blocks of GGUF files, in a vector of AVX2.

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace fovea::model {

using Bytes = const uint8_t*;

// Smaller stores than those of 32 numbers could not be forwarded to the loads of the packing.
using Numbers = __m256i;

inline Numbers load(Bytes at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }
inline void store(Numbers v, uint8_t* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
}

// The bits of both.
inline Numbers joined(Numbers a, Numbers b) { return _mm256_or_si256(a, b); }

// Shifts bits to the left, which must stay within their bytes.
inline Numbers raised(Numbers v, int shift) { return _mm256_slli_epi16(v, shift); }

// Adds 128 to signed numbers.
inline Numbers without_sign(Numbers v) { return _mm256_xor_si256(v, _mm256_set1_epi8(-128)); }

// Returns the bits `mask` of each byte, after shifting them to the right.
inline Numbers masked(Numbers v, int shift, char mask) {
  return _mm256_and_si256(_mm256_srli_epi16(v, shift), _mm256_set1_epi8(mask));
}

// Reads 32 numbers of 4 bits from 16 bytes: first all lower halves, then all upper halves.
inline Numbers read_nibbles(Bytes from) {
  const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  const Numbers halves =
      _mm256_inserti128_si256(_mm256_castsi128_si256(both), _mm_srli_epi16(both, 4), 1);
  return _mm256_and_si256(halves, _mm256_set1_epi8(15));
}

// Returns the fifth bits of 32 numbers, bit i % 8 of byte i / 8, as 0 or 16.
inline Numbers read_fifth_bits(Bytes from) {
  uint32_t bits;
  std::memcpy(&bits, from, sizeof bits);
  const Numbers each = _mm256_shuffle_epi8(
      _mm256_set1_epi32(static_cast<int>(bits)),
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
  const Numbers own = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  const Numbers set = _mm256_cmpeq_epi8(_mm256_and_si256(each, own), own);
  return _mm256_and_si256(set, _mm256_set1_epi8(16));
}

}  // namespace fovea::model
