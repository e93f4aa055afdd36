#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/half.h"
#include "base/threads.h"
#include "checkpoint/gguf_blocks.h"
#include "kernels/layout/quantize_block.h"

namespace fovea::model {
namespace {

// The functions below are the inverses of those in gguf_blocks.cc.

void put_half(uint16_t half, uint8_t* to) { std::memcpy(to, &half, sizeof half); }

// Writes the low 4 bits of 32 numbers to 16 bytes: the first 16 numbers to the lower halves.
void put_nibbles(const uint8_t* numbers, uint8_t* to) {
  for (int i = 0; i < 16; ++i)
    to[i] = static_cast<uint8_t>((numbers[i] & 15) | numbers[i + 16] << 4);
}

void put_fifth_bits(const uint8_t* numbers, uint8_t* to) {
  uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<uint32_t>(numbers[i] >> 4 & 1) << i;
  std::memcpy(to, &bits, sizeof bits);
}

// Writes bit `from` of 256 numbers: that of element i of the group of 32 number g to bit g of byte
// i.
void put_bit_plane(const uint8_t* numbers, int from, uint8_t* to) {
  for (int i = 0; i < 32; ++i) {
    unsigned bits = 0;
    for (int g = 0; g < 8; ++g) bits |= (numbers[32 * g + i] >> from & 1u) << g;
    to[i] = static_cast<uint8_t>(bits);
  }
}

void put_group_nibbles(const uint8_t* numbers, uint8_t* to) {
  for (int pair = 0; pair < 4; ++pair)
    for (int i = 0; i < 32; ++i, ++to)
      *to = static_cast<uint8_t>((numbers[64 * pair + i] & 15) | (numbers[64 * pair + 32 + i] & 15)
                                                                     << 4);
}

void put_quarters(const uint8_t* numbers, uint8_t* to) {
  for (int half = 0; half < 2; ++half, numbers += 128) {
    for (int i = 0; i < 32; ++i, ++to) {
      unsigned bits = 0;
      for (int part = 0; part < 4; ++part) bits |= (numbers[32 * part + i] & 3u) << (2 * part);
      *to = static_cast<uint8_t>(bits);
    }
  }
}

// Writes the twelve bytes of the scales and minimums of Q4_K and Q5_K.
void put_groups(const WeightBlock& b, uint8_t* to) {
  put_half(b.scale, to);
  put_half(b.minimum, to + 2);
  for (int g = 0; g < 4; ++g) {
    const int scale = static_cast<uint8_t>(b.scales[g + 4]),
              minimum = static_cast<uint8_t>(b.minimums[g + 4]);
    to[4 + g] = static_cast<uint8_t>(b.scales[g] | scale >> 4 << 6);
    to[8 + g] = static_cast<uint8_t>(b.minimums[g] | minimum >> 4 << 6);
    to[12 + g] = static_cast<uint8_t>((scale & 15) | (minimum & 15) << 4);
  }
}

void put_q4_0(const WeightBlock& b, uint8_t* to) {
  put_half(b.scale, to);
  put_nibbles(b.numbers, to + 2);
}

void put_q4_1(const WeightBlock& b, uint8_t* to) {
  put_half(b.scale, to);
  put_half(b.minimum ^ 0x8000u, to + 2);
  put_nibbles(b.numbers, to + 4);
}

void put_q5_0(const WeightBlock& b, uint8_t* to) {
  put_half(b.scale, to);
  put_fifth_bits(b.numbers, to + 2);
  put_nibbles(b.numbers, to + 6);
}

void put_q5_1(const WeightBlock& b, uint8_t* to) {
  put_half(b.scale, to);
  put_half(b.minimum ^ 0x8000u, to + 2);
  put_fifth_bits(b.numbers, to + 4);
  put_nibbles(b.numbers, to + 8);
}

void put_q8_0(const WeightBlock& b, uint8_t* to) {
  put_half(b.scale, to);
  for (int i = 0; i < 32; ++i) to[2 + i] = static_cast<uint8_t>(b.numbers[i] ^ 0x80);
}

void put_q4_k(const WeightBlock& b, uint8_t* to) {
  put_groups(b, to);
  put_group_nibbles(b.numbers, to + 16);
}

void put_q5_k(const WeightBlock& b, uint8_t* to) {
  put_groups(b, to);
  put_bit_plane(b.numbers, 4, to + 16);
  put_group_nibbles(b.numbers, to + 48);
}

void put_q6_k(const WeightBlock& b, uint8_t* to) {
  for (int half = 0; half < 2; ++half) {
    const uint8_t* numbers = b.numbers + 128 * half;
    uint8_t *low = to + 64 * half, *high = to + 128 + 32 * half;
    for (int i = 0; i < 64; ++i)
      low[i] = static_cast<uint8_t>((numbers[i] & 15) | (numbers[i + 64] & 15) << 4);
    for (int i = 0; i < 32; ++i) {
      unsigned bits = 0;
      for (int part = 0; part < 4; ++part) bits |= (numbers[32 * part + i] >> 4 & 3u) << (2 * part);
      high[i] = static_cast<uint8_t>(bits);
    }
  }
  std::memcpy(to + 192, b.scales, 16);
  put_half(b.scale, to + 208);
}

void put_q2_k(const WeightBlock& b, uint8_t* to) {
  for (int g = 0; g < 16; ++g) to[g] = static_cast<uint8_t>(b.scales[g] | b.minimums[g] << 4);
  put_quarters(b.numbers, to + 16);
  put_half(b.scale, to + 80);
  put_half(b.minimum, to + 82);
}

void put_q3_k(const WeightBlock& b, uint8_t* to) {
  put_bit_plane(b.numbers, 2, to);
  put_quarters(b.numbers, to + 32);
  uint8_t* s = to + 96;
  std::fill_n(s, 12, uint8_t{0});
  for (int g = 0; g < 16; ++g) {
    const int scale = b.scales[g] + 32;
    s[g % 8] = static_cast<uint8_t>(s[g % 8] | (scale & 15) << (g / 8 * 4));
    s[8 + g % 4] = static_cast<uint8_t>(s[8 + g % 4] | scale >> 4 << (g / 4 * 2));
  }
  put_half(b.scale, to + 108);
}

void put_iq4_xs(const WeightBlock& b, uint8_t* to) {
  put_half(b.scale, to);
  unsigned high = 0;
  std::fill_n(to + 4, 4, uint8_t{0});
  for (int g = 0; g < 8; ++g) {
    const int scale = b.scales[g] + 32;
    to[4 + g / 2] = static_cast<uint8_t>(to[4 + g / 2] | (scale & 15) << (g % 2 * 4));
    high |= static_cast<unsigned>(scale >> 4) << (2 * g);
    put_nibbles(b.numbers + 32 * g, to + 8 + 16 * g);
  }
  put_half(static_cast<uint16_t>(high), to + 2);
}

// The exponent e of a scale 2^(e - 128), which is bits of bf16. The smallest scale stands for 0.
void put_mxfp4(const WeightBlock& b, uint8_t* to) {
  to[0] = static_cast<uint8_t>(b.scale < 0x80 ? b.scale / 0x40 : (b.scale >> 7) + 1);
  put_nibbles(b.numbers, to + 1);
}

using Write = void (*)(const WeightBlock& block, uint8_t* to);

Write writer_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::int8: return put_q8_0;
    case WeightFormat::int4:
    case WeightFormat::iq4_nl: return put_q4_0;
    case WeightFormat::q4_1: return put_q4_1;
    case WeightFormat::q5_0: return put_q5_0;
    case WeightFormat::q5_1: return put_q5_1;
    case WeightFormat::q2_k: return put_q2_k;
    case WeightFormat::q3_k: return put_q3_k;
    case WeightFormat::q4_k: return put_q4_k;
    case WeightFormat::q5_k: return put_q5_k;
    case WeightFormat::q6_k: return put_q6_k;
    case WeightFormat::iq4_xs: return put_iq4_xs;
    case WeightFormat::mxfp4: return put_mxfp4;
    default: return nullptr;
  }
}

// Rounds 32 numbers as ggml does, which is exact enough with 8 bits: the largest magnitude maps to
// 127.
void round_to_bytes(const float* x, WeightBlock& to) {
  float most = 0;
  for (int i = 0; i < 32; ++i) most = std::max(most, std::fabs(x[i]));
  const float scale = most / 127, inverse = scale == 0 ? 0 : 1 / scale;
  to.scale = narrow_to_half(scale);
  for (int i = 0; i < 32; ++i)
    to.numbers[i] = static_cast<uint8_t>(128 + static_cast<int>(std::round(x[i] * inverse)));
}

// Calls encode(x, to, index) for each block of a tensor, on all threads.
template <class Encode>
std::string encode_each(const Tensor& values, int64_t elements, int64_t bytes, Encode&& encode) {
  const int64_t blocks = values.size() / elements;
  std::string encoded(static_cast<size_t>(blocks * bytes), '\0');
  const float* from = values.data_as<float>();
  parallel_for(blocks, 4096 / elements, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      encode(from + i * elements, reinterpret_cast<uint8_t*>(&encoded[i * bytes]), i);
  });
  return encoded;
}

}  // namespace

void write_gguf_block(WeightFormat format, const WeightBlock& block, uint8_t* to) {
  const Write write = writer_of(format);
  check(write != nullptr, "{}: cannot be written; expected a type with integers", name_of(format));
  write(block, to);
}

std::string encode_gguf(std::string_view block, const Tensor& values,
                        std::span<const float> importance) {
  if (block == "F32") return std::string(values.data_as<char>(), values.bytes());
  if (block == "F16") {
    return encode_each(values, 1, 2, [](const float* x, uint8_t* to, int64_t) {
      put_half(narrow_to_half(*x), to);
    });
  }
  if (block == "BF16") {
    return encode_each(values, 1, 2,
                       [](const float* x, uint8_t* to, int64_t) { put_half(narrow(*x).bits, to); });
  }
  const GgufFormat* type = find_gguf_format(block);
  check(type != nullptr && writer_of(type->format) != nullptr,
        "{}: cannot be written; expected F32, F16, BF16, {}", block, gguf_format_names());
  const BlockFormat& format = block_format(type->format);
  const int64_t width = values.shape().back(), in_row = width / format.block;
  const int64_t rows = values.size() / width;
  const int64_t matrices = std::ssize(importance) / width;
  return encode_each(
      values, format.block, type->reader.bytes, [&](const float* x, uint8_t* to, int64_t index) {
        WeightBlock encoded;
        const int64_t matrix = matrices > 1 ? index / in_row / (rows / matrices) : 0;
        const float* weights =
            importance.empty() ? nullptr
                               : importance.data() + matrix * width + index % in_row * format.block;
        if (type->format == WeightFormat::int8)
          round_to_bytes(x, encoded);
        else
          quantize_block(format, x, weights, encoded);
        write_gguf_block(type->format, encoded, to);
      });
}

}  // namespace fovea::model
