#pragma once

// The functions of gguf_numbers_x86.h in plain C++, for all CPUs.

#include <cstdint>
#include <cstring>

namespace fovea::model {

using Bytes = const uint8_t*;

struct Numbers {
  uint64_t words[4];
};

constexpr uint64_t repeated(uint8_t byte) { return byte * 0x0101010101010101u; }

inline Numbers load(Bytes at) {
  Numbers v;
  std::memcpy(&v, at, sizeof v);
  return v;
}
inline void store(const Numbers& v, uint8_t* to) { std::memcpy(to, &v, sizeof v); }

inline Numbers joined(Numbers a, const Numbers& b) {
  for (int i = 0; i < 4; ++i) a.words[i] |= b.words[i];
  return a;
}

inline Numbers raised(Numbers v, int shift) {
  for (uint64_t& word : v.words) word <<= shift;
  return v;
}

inline Numbers without_sign(Numbers v) {
  for (uint64_t& word : v.words) word ^= repeated(128);
  return v;
}

inline Numbers masked(Numbers v, int shift, uint8_t mask) {
  for (uint64_t& word : v.words) word = word >> shift & repeated(mask);
  return v;
}

inline Numbers read_nibbles(Bytes from) {
  uint64_t both[2];
  std::memcpy(both, from, sizeof both);
  return masked({{both[0], both[1], both[0] >> 4, both[1] >> 4}}, 0, 15);
}

inline Numbers read_fifth_bits(Bytes from) {
  Numbers v;
  for (int i = 0; i < 4; ++i) {
    const uint64_t own = repeated(from[i]) & 0x8040201008040201u;  // bit j of byte j
    v.words[i] = (own + repeated(127)) >> 3 & repeated(16);        // 127 moves a bit to the top
  }
  return v;
}

}  // namespace fovea::model
