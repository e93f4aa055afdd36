#pragma once

// Random numbers that depend only on a seed and on what they are for, not on the machine, the
// number of threads or earlier draws for another purpose.

#include <array>
#include <cstdint>

namespace fovea {

// One stream per purpose, so that more draws for one purpose do not change the numbers of the rest.
enum class Stream : uint32_t { init = 1, shuffle = 2, dropout = 3, sampling = 4, moments = 5 };

// Philox4x32-10 (Salmon et al. 2011): four random words that depend only on (seed, stream,
// substream, counter). The key is the two halves of the seed; the counter's words are the low and
// the high half of `counter`, `substream` and `stream`.
std::array<uint32_t, 4> philox(uint64_t seed, Stream stream, uint32_t substream, uint64_t counter);

inline float uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }  // [0, 1)

// A sequence of random numbers of one substream.
class Random {
 public:
  Random(uint64_t seed, Stream stream, uint32_t substream = 0)
      : seed_(seed), stream_(stream), substream_(substream) {}
  uint32_t word();
  float uniform() { return fovea::uniform(word()); }
  double uniform_double();  // 53 bits
  float normal();           // mean 0, standard deviation 1 (Box-Muller)

 private:
  uint64_t seed_;
  Stream stream_;
  uint32_t substream_;
  uint64_t drawn_ = 0;  // words drawn so far
  std::array<uint32_t, 4> block_{};
};

}  // namespace fovea
