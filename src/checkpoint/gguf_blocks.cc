#include "checkpoint/gguf_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/threads.h"
#include "checkpoint/safetensors.h"

namespace fovea {
namespace {

using Bytes = const uint8_t*;

float half_at(Bytes block, size_t place) {
  uint16_t bits;
  std::memcpy(&bits, block + place, sizeof bits);
  return widen_half(bits);
}

// Returns the low 4 bits of element i in a block of 32. The first 16 elements use the lower halves
// of the bytes, the others the upper halves.
int low_bits(Bytes quants, int i) { return i < 16 ? quants[i] & 15 : quants[i - 16] >> 4; }

int fifth_bit(Bytes bits, int i) { return (bits[i / 8] >> (i % 8) & 1) << 4; }

void q4_0(Bytes b, float* y) {
  for (int i = 0; i < 32; ++i) y[i] = half_at(b, 0) * static_cast<float>(low_bits(b + 2, i) - 8);
}

void q4_1(Bytes b, float* y) {
  for (int i = 0; i < 32; ++i)
    y[i] = half_at(b, 0) * static_cast<float>(low_bits(b + 4, i)) + half_at(b, 2);
}

void q5_0(Bytes b, float* y) {
  for (int i = 0; i < 32; ++i) {
    const int quant = low_bits(b + 6, i) | fifth_bit(b + 2, i);
    y[i] = half_at(b, 0) * static_cast<float>(quant - 16);
  }
}

void q5_1(Bytes b, float* y) {
  for (int i = 0; i < 32; ++i) {
    const int quant = low_bits(b + 8, i) | fifth_bit(b + 4, i);
    y[i] = half_at(b, 0) * static_cast<float>(quant) + half_at(b, 2);
  }
}

void q8_0(Bytes b, float* y) {
  for (int i = 0; i < 32; ++i)
    y[i] = static_cast<float>(static_cast<int8_t>(b[2 + i])) * half_at(b, 0);
}

// A Q4_K or Q5_K block has 256 elements in eight groups of 32. The 6-bit scales and minimums of the
// groups are in twelve bytes. Groups 0-3 use the low six bits of bytes 0-3 (scales) and 4-7
// (minimums). For groups 4-7, bytes 8-11 have the low four bits (scales in the lower halves,
// minimums in the upper halves), and the top two bits of bytes 0-7 are the high bits.
struct Group {
  float scale, minimum;
};
Group group_of(Bytes b, int group) {
  Bytes s = b + 4;
  int scale = s[group % 4], minimum = s[4 + group % 4];
  if (group < 4) {
    scale &= 63;
    minimum &= 63;
  } else {
    const int low = s[4 + group];
    scale = (low & 15) | (scale >> 2 & 48);
    minimum = low >> 4 | (minimum >> 2 & 48);
  }
  return {half_at(b, 0) * static_cast<float>(scale), half_at(b, 2) * static_cast<float>(minimum)};
}

// Returns the low 4 bits of element i of a group. Two groups share 32 bytes; the first group uses
// the lower halves of the bytes.
int group_quant(Bytes quants, int group, int i) {
  return quants[group / 2 * 32 + i] >> (group % 2 * 4) & 15;
}

void q4_k(Bytes b, float* y) {
  for (int group = 0; group < 8; ++group) {
    const auto [scale, minimum] = group_of(b, group);
    for (int i = 0; i < 32; ++i)
      *y++ = scale * static_cast<float>(group_quant(b + 16, group, i)) - minimum;
  }
}

void q5_k(Bytes b, float* y) {
  for (int group = 0; group < 8; ++group) {
    const auto [scale, minimum] = group_of(b, group);
    for (int i = 0; i < 32; ++i) {
      const int quant = group_quant(b + 48, group, i) | (b[16 + i] >> group & 1) << 4;
      *y++ = scale * static_cast<float>(quant) - minimum;
    }
  }
}

// Every four groups of 32 elements share 64 bytes of low bits and 32 bytes of high bits; there is a
// scale per 16 elements.
void q6_k(Bytes b, float* y) {
  const float whole = half_at(b, 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, part = i % 128 / 32, at = i % 32;
    const int low = b[half * 64 + part % 2 * 32 + at] >> (part / 2 * 4) & 15;
    const int high = b[128 + half * 32 + at] >> (part * 2) & 3;
    const float scale = whole * static_cast<float>(static_cast<int8_t>(b[192 + i / 16]));
    y[i] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

struct Decoder {
  std::string_view name;
  int elements, bytes;
  void (*decode)(Bytes, float*);
};
constexpr std::array kDecoders = {Decoder{"Q4_0", 32, 18, q4_0},   Decoder{"Q4_1", 32, 20, q4_1},
                                  Decoder{"Q5_0", 32, 22, q5_0},   Decoder{"Q5_1", 32, 24, q5_1},
                                  Decoder{"Q8_0", 32, 34, q8_0},   Decoder{"Q4_K", 256, 144, q4_k},
                                  Decoder{"Q5_K", 256, 176, q5_k}, Decoder{"Q6_K", 256, 210, q6_k}};

const Decoder* find_decoder(std::string_view block) {
  for (const Decoder& decoder : kDecoders)
    if (decoder.name == block) return &decoder;
  return nullptr;
}

// Converts to IEEE binary16; rounds to nearest, ties to even.
uint16_t narrow_half(float x) {
  const uint32_t sign = std::bit_cast<uint32_t>(x) >> 16 & 0x8000u;
  const float size = std::fabs(x);
  const uint32_t bits = std::bit_cast<uint32_t>(size);
  if (std::isnan(x)) return static_cast<uint16_t>(sign | 0x7e00u);
  // The bits of a subnormal half count units of 2^-24, the value of the last bit of the float 0.5.
  const uint32_t half = size < 0x1p-14f
                            ? std::bit_cast<uint32_t>(size + 0.5f) - std::bit_cast<uint32_t>(0.5f)
                            : ((bits + 0xfffu + (bits >> 13 & 1u)) >> 13) - (112u << 10);
  return static_cast<uint16_t>(sign | std::min(half, 0x7c00u));
}

void put_half(float value, char* to) {
  const uint16_t half = narrow_half(value);
  std::memcpy(to, &half, sizeof half);
}

// The scale is the element of largest magnitude divided by -8, so that this element becomes exactly
// -8.
void encode_q4_0(const float* x, char* to) {
  float most = 0;
  for (int i = 0; i < 32; ++i)
    if (std::fabs(x[i]) > std::fabs(most)) most = x[i];
  const float scale = most / -8, inverse = scale == 0 ? 0 : 1 / scale;
  put_half(scale, to);
  const auto quant = [&](int i) { return std::min(15, static_cast<int>(x[i] * inverse + 8.5f)); };
  for (int i = 0; i < 16; ++i) to[2 + i] = static_cast<char>(quant(i) | quant(i + 16) << 4);
}

void encode_q8_0(const float* x, char* to) {
  float most = 0;
  for (int i = 0; i < 32; ++i) most = std::max(most, std::fabs(x[i]));
  const float scale = most / 127, inverse = scale == 0 ? 0 : 1 / scale;
  put_half(scale, to);
  for (int i = 0; i < 32; ++i)
    to[2 + i] = static_cast<char>(static_cast<int8_t>(std::round(x[i] * inverse)));
}

template <class Encode>
std::string encode_blocks(const Tensor& values, int64_t elements, int64_t bytes, Encode&& encode) {
  const int64_t blocks = values.size() / elements;
  std::string encoded(static_cast<size_t>(blocks * bytes), '\0');
  const float* from = values.data_as<float>();
  parallel_for(blocks, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) encode(from + i * elements, &encoded[i * bytes]);
  });
  return encoded;
}

}  // namespace

bool decodes_gguf(std::string_view block) { return find_decoder(block) != nullptr; }

void decode_gguf(std::string_view block, const char* from, int64_t count, float* to) {
  const Decoder* decoder = find_decoder(block);
  check(decoder != nullptr && count % decoder->elements == 0,
        "{}: cannot decode {} elements; expected a supported format and complete blocks", block,
        count);
  parallel_for(count / decoder->elements, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      decoder->decode(reinterpret_cast<Bytes>(from) + i * decoder->bytes,
                      to + i * decoder->elements);
  });
}

std::string encode_gguf(std::string_view block, const Tensor& values) {
  if (block == "Q4_0") return encode_blocks(values, 32, 18, encode_q4_0);
  if (block == "Q8_0") return encode_blocks(values, 32, 34, encode_q8_0);
  if (block == "F16")
    return encode_blocks(values, 1, 2, [](const float* x, char* y) { put_half(*x, y); });
  if (block == "BF16") {
    return encode_blocks(values, 1, 2, [](const float* x, char* y) {
      const bf16 narrowed = narrow(*x);
      std::memcpy(y, &narrowed, sizeof narrowed);
    });
  }
  check(block == "F32", "{}: cannot be written; expected F32, F16, BF16, Q8_0 or Q4_0", block);
  return std::string(values.data_as<char>(), values.bytes());
}

}  // namespace fovea
