#include "checkpoint/gguf_blocks.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/threads.h"
#ifdef __aarch64__
#include "checkpoint/gguf_numbers_plain.h"
#else
#include "checkpoint/gguf_numbers_x86.h"
#endif

namespace fovea::model {
namespace {

uint16_t half_at(Bytes at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

// A minimum that the file adds instead of subtracting it.
uint16_t added_half_at(Bytes at) { return half_at(at) ^ 0x8000u; }

// Adds bits to 256 numbers: that of element i of the group of 32 number g is bit g of byte i. The
// bit becomes bit `to` of the number.
void add_bit_plane(Bytes from, int to, uint8_t* numbers) {
  const Numbers bits = load(from);
  for (int g = 0; g < 8; ++g, numbers += 32)
    store(joined(load(numbers), raised(masked(bits, g, 1), to)), numbers);
}

void q4_0(Bytes b, WeightBlock& to) {
  to.scale = half_at(b);
  store(read_nibbles(b + 2), to.numbers);
}

void q4_1(Bytes b, WeightBlock& to) {
  to.scale = half_at(b);
  to.minimum = added_half_at(b + 2);
  store(read_nibbles(b + 4), to.numbers);
}

void q5_0(Bytes b, WeightBlock& to) {
  to.scale = half_at(b);
  store(joined(read_nibbles(b + 6), read_fifth_bits(b + 2)), to.numbers);
}

void q5_1(Bytes b, WeightBlock& to) {
  to.scale = half_at(b);
  to.minimum = added_half_at(b + 2);
  store(joined(read_nibbles(b + 8), read_fifth_bits(b + 4)), to.numbers);
}

void q8_0(Bytes b, WeightBlock& to) {
  to.scale = half_at(b);
  store(without_sign(load(b + 2)), to.numbers);
}

void mxfp4(Bytes b, WeightBlock& to) {
  to.scale = mxfp4_scale(b[0]);
  store(read_nibbles(b + 1), to.numbers);
}

// A Q4_K or Q5_K block has 256 elements in eight groups of 32. The 6-bit scales and minimums of the
// groups are in twelve bytes. Groups 0-3 use the low six bits of bytes 0-3 (scales) and 4-7
// (minimums). For groups 4-7, bytes 8-11 have the low four bits (scales in the lower halves,
// minimums in the upper halves), and the top two bits of bytes 0-7 are the high bits.
void read_groups(Bytes b, WeightBlock& to) {
  to.scale = half_at(b);
  to.minimum = half_at(b + 2);
  uint32_t word[3];
  std::memcpy(word, b + 4, sizeof word);
  constexpr uint32_t kSix = 0x3f3f3f3f, kFour = 0x0f0f0f0f, kTop = 0x30303030;
  const auto put = [](uint32_t first, uint32_t second, int8_t* eight) {
    const uint64_t both = first | static_cast<uint64_t>(second) << 32;
    std::memcpy(eight, &both, sizeof both);
  };
  put(word[0] & kSix, (word[2] & kFour) | (word[0] >> 2 & kTop), to.scales);
  put(word[1] & kSix, (word[2] >> 4 & kFour) | (word[1] >> 2 & kTop), to.minimums);
}

// Reads 256 numbers of 4 bits. Two groups of 32 share 32 bytes; the first group uses the lower
// halves of the bytes.
void read_group_nibbles(Bytes from, uint8_t* to) {
  for (int pair = 0; pair < 4; ++pair, from += 32, to += 64) {
    store(masked(load(from), 0, 15), to);
    store(masked(load(from), 4, 15), to + 32);
  }
}

void q4_k(Bytes b, WeightBlock& to) {
  read_groups(b, to);
  read_group_nibbles(b + 16, to.numbers);
}

void q5_k(Bytes b, WeightBlock& to) {
  read_groups(b, to);
  read_group_nibbles(b + 48, to.numbers);
  add_bit_plane(b + 16, 4, to.numbers);
}

// Every four groups of 32 elements share 64 bytes of low bits and 32 bytes of high bits; there is a
// scale per 16 elements.
void q6_k(Bytes b, WeightBlock& to) {
  to.scale = half_at(b + 208);
  std::memcpy(to.scales, b + 192, 16);
  for (int half = 0; half < 2; ++half) {
    for (int part = 0; part < 4; ++part) {
      Bytes low = b + half * 64 + part % 2 * 32, high = b + 128 + half * 32;
      uint8_t* numbers = to.numbers + half * 128 + part * 32;
      const Numbers upper = raised(masked(load(high), part * 2, 3), 4);
      store(joined(masked(load(low), part / 2 * 4, 15), upper), numbers);
    }
  }
}

// Reads 256 numbers of 2 bits. Four groups of 32 share 32 bytes.
void read_quarters(Bytes from, uint8_t* to) {
  for (int half = 0; half < 2; ++half, from += 32) {
    for (int shift = 0; shift < 8; shift += 2, to += 32) store(masked(load(from), shift, 3), to);
  }
}

// There is a byte per 16 elements, with a scale in the lower half and a minimum in the upper half.
void q2_k(Bytes b, WeightBlock& to) {
  to.scale = half_at(b + 80);
  to.minimum = half_at(b + 82);
  for (int g = 0; g < 16; ++g) {
    to.scales[g] = b[g] & 15;
    to.minimums[g] = static_cast<int8_t>(b[g] >> 4);
  }
  read_quarters(b + 16, to.numbers);
}

// There is a 6-bit scale per 16 elements: the low four bits in the halves of eight bytes, the high
// two bits in four bytes.
void q3_k(Bytes b, WeightBlock& to) {
  to.scale = half_at(b + 108);
  Bytes s = b + 96;
  for (int g = 0; g < 16; ++g) {
    const int low = g < 8 ? s[g] & 15 : s[g - 8] >> 4, high = s[8 + g % 4] >> (g / 4 * 2) & 3;
    to.scales[g] = static_cast<int8_t>((low | high << 4) - 32);
  }
  read_quarters(b + 32, to.numbers);
  add_bit_plane(b, 2, to.numbers);
}

// There is a 6-bit scale per 32 elements: the low four bits in the halves of four bytes, the high
// two bits in 16 bits.
void iq4_xs(Bytes b, WeightBlock& to) {
  to.scale = half_at(b);
  const int high = half_at(b + 2);
  for (int g = 0; g < 8; ++g) {
    const int low = b[4 + g / 2] >> (g % 2 * 4) & 15;
    to.scales[g] = static_cast<int8_t>((low | (high >> 2 * g & 3) << 4) - 32);
    store(read_nibbles(b + 8 + 16 * g), to.numbers + 32 * g);
  }
}

constexpr std::array kGgufFormats = {GgufFormat{"Q4_0", WeightFormat::int4, {18, q4_0}},
                                     GgufFormat{"Q4_1", WeightFormat::q4_1, {20, q4_1}},
                                     GgufFormat{"Q5_0", WeightFormat::q5_0, {22, q5_0}},
                                     GgufFormat{"Q5_1", WeightFormat::q5_1, {24, q5_1}},
                                     GgufFormat{"Q8_0", WeightFormat::int8, {34, q8_0}},
                                     GgufFormat{"Q2_K", WeightFormat::q2_k, {84, q2_k}},
                                     GgufFormat{"Q3_K", WeightFormat::q3_k, {110, q3_k}},
                                     GgufFormat{"Q4_K", WeightFormat::q4_k, {144, q4_k}},
                                     GgufFormat{"Q5_K", WeightFormat::q5_k, {176, q5_k}},
                                     GgufFormat{"Q6_K", WeightFormat::q6_k, {210, q6_k}},
                                     GgufFormat{"IQ4_NL", WeightFormat::iq4_nl, {18, q4_0}},
                                     GgufFormat{"IQ4_XS", WeightFormat::iq4_xs, {136, iq4_xs}},
                                     GgufFormat{"MXFP4", WeightFormat::mxfp4, {17, mxfp4}}};

}  // namespace

const GgufFormat* find_gguf_format(std::string_view block) {
  const auto* found = std::find_if(kGgufFormats.begin(), kGgufFormats.end(),
                                   [&](const GgufFormat& format) { return format.name == block; });
  return found == kGgufFormats.end() ? nullptr : found;
}

std::string gguf_format_names() {
  std::string names;
  for (const GgufFormat& format : kGgufFormats) {
    if (!names.empty()) names += &format == &kGgufFormats.back() ? " or " : ", ";
    names += format.name;
  }
  return names;
}

void decode_gguf(std::string_view block, const char* from, int64_t count, float* to) {
  const GgufFormat* type = find_gguf_format(block);
  check(type != nullptr && count % block_format(type->format).block == 0,
        "{}: cannot decode {} elements; expected a supported format and complete blocks", block,
        count);
  const BlockFormat& format = block_format(type->format);
  parallel_for(count / format.block, 64, [&](int64_t begin, int64_t end) {
    WeightBlock values;
    for (int64_t i = begin; i < end; ++i) {
      type->reader.read(reinterpret_cast<Bytes>(from) + i * type->reader.bytes, values);
      decode_block(format, values, to + i * format.block);
    }
  });
}

}  // namespace fovea::model
