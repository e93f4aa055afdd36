#include "kernels/blocks.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/half.h"
#include "base/threads.h"

namespace fovea {
namespace {

constexpr int64_t kOut = kPanelOutputs, kPart = 32;  // numbers that share lines
constexpr int64_t kLine = 4 * kOut;

constexpr int8_t kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                             1,    13,   25,  38,  53,  69,  89,  113};
constexpr int8_t kMxfp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// In the order of WeightFormat, from int8 on.
constexpr BlockFormat kFormats[] = {{"Q8_0", 32, 32, 8, 0, 128, BlockScales::half},
                                    {"Q4_0", 32, 32, 4, 0, 8, BlockScales::half},
                                    {"Q4_1", 32, 32, 4, 0, 0, BlockScales::half_minimum},
                                    {"Q5_0", 32, 32, 4, 1, 16, BlockScales::half},
                                    {"Q5_1", 32, 32, 4, 1, 0, BlockScales::half_minimum},
                                    {"Q2_K", 256, 16, 2, 0, 0, BlockScales::nibbles_minimum},
                                    {"Q3_K", 256, 16, 2, 1, 4, BlockScales::bytes},
                                    {"Q4_K", 256, 32, 4, 0, 0, BlockScales::bytes_minimum},
                                    {"Q5_K", 256, 32, 4, 1, 0, BlockScales::bytes_minimum},
                                    {"Q6_K", 256, 16, 4, 2, 32, BlockScales::bytes},
                                    {"IQ4_NL", 32, 32, 4, 0, 0, BlockScales::half, kIq4},
                                    {"IQ4_XS", 256, 32, 4, 0, 0, BlockScales::bytes, kIq4},
                                    {"MXFP4", 32, 32, 4, 0, 0, BlockScales::bfloat, kMxfp4}};

bool has_bytes(BlockScales scales) {
  return scales == BlockScales::bytes || scales == BlockScales::bytes_minimum ||
         scales == BlockScales::nibbles_minimum;
}

// The scale of a block as a float: bits of bf16 or f16.
float scale_of(const BlockFormat& format, uint16_t bits) {
  return format.scales == BlockScales::bfloat ? widen(bf16{bits}) : widen_half(bits);
}

// Returns the bits of four numbers of 2 bits for each byte: the two bits from `shift` of `u`[f] in
// bits 2 f and 2 f + 1.
uint32_t quarters(const uint8_t* u, int shift) {
  const __m128i bits = _mm_srli_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(u)), shift);
  __m128i v = _mm_and_si128(bits, _mm_set1_epi8(3));
  v = _mm_sllv_epi32(v, _mm_setr_epi32(0, 2, 4, 6));
  v = _mm_or_si128(v, _mm_shuffle_epi32(v, 0x4e));
  v = _mm_or_si128(v, _mm_shuffle_epi32(v, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(v));
}

// Returns bit `shift` of u[t] in bit t, for each of 8 numbers for each byte.
uint32_t eighths(const uint8_t* u, int shift) {
  const __m256i bits =
      _mm256_srli_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(u)), shift);
  const __m256i each = _mm256_sllv_epi32(_mm256_and_si256(bits, _mm256_set1_epi8(1)),
                                         _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m128i v = _mm_or_si128(_mm256_castsi256_si128(each), _mm256_extracti128_si256(each, 1));
  v = _mm_or_si128(v, _mm_shuffle_epi32(v, 0x4e));
  v = _mm_or_si128(v, _mm_shuffle_epi32(v, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(v));
}

// Writes 32 numbers of an output to the lines of a panel; `to` is the output's place in the first
// line.
template <int kLow, int kHigh>
void put_numbers(const uint8_t* numbers, uint8_t* to) {
  const auto put = [&](const void* bits) {
    std::memcpy(to, bits, 4);
    to += kLine;
  };
  const auto put_word = [&](uint32_t bits) { put(&bits); };
  if constexpr (kLow == 8)
    for (int t = 0; t < 8; ++t) put(numbers + 4 * t);
  if constexpr (kLow == 4) {
    uint64_t u[4], line[2];
    std::memcpy(u, numbers, sizeof u);
    constexpr uint64_t kMask = 0x0f0f0f0f0f0f0f0f;
    for (int i = 0; i < 2; ++i) line[i] = (u[i] & kMask) | (u[i + 2] & kMask) << 4;
    for (int l = 0; l < 4; ++l) put(reinterpret_cast<const uint8_t*>(line) + 4 * l);
  }
  if constexpr (kLow == 2)
    for (int l = 0; l < 2; ++l) put_word(quarters(numbers + 16 * l, 0));
  if constexpr (kHigh == 2)
    for (int l = 0; l < 2; ++l) put_word(quarters(numbers + 16 * l, kLow));
  if constexpr (kHigh == 1) put_word(eighths(numbers, kLow));
}

// The inverse of put_numbers().
void get_numbers(const BlockFormat& format, const uint8_t* from, uint8_t* numbers) {
  const auto line = [&](int index) {
    uint32_t bits;
    std::memcpy(&bits, from + index * kLine, sizeof bits);
    return bits;
  };
  uint32_t u[8];
  for (int t = 0; t < 8; ++t) {
    if (format.low == 8) u[t] = line(t);
    if (format.low == 4) u[t] = line(t % 4) >> t / 4 * 4 & 0x0f0f0f0fu;
    if (format.low == 2) u[t] = line(t / 4) >> t % 4 * 2 & 0x03030303u;
    if (format.high == 2)
      u[t] |= (line(format.low + t / 4) >> t % 4 * 2 & 0x03030303u) << format.low;
    if (format.high == 1) u[t] |= (line(format.low) >> t & 0x01010101u) << format.low;
  }
  std::memcpy(numbers, u, sizeof u);
}

using PutNumbers = void (*)(const uint8_t* numbers, uint8_t* to);

PutNumbers put_of(const BlockFormat& format) {
  switch (10 * format.low + format.high) {
    case 80: return put_numbers<8, 0>;
    case 40: return put_numbers<4, 0>;
    case 41: return put_numbers<4, 1>;
    case 42: return put_numbers<4, 2>;
    case 20: return put_numbers<2, 0>;
    default: return put_numbers<2, 1>;
  }
}

// Writes or reads the scales of a block of output `lane` in its record; `copy` is called with the
// place in the record and the field.
template <class Record, class Fields, class Copy>
void each_scale(const BlockFormat& format, Record* record, int64_t lane, Fields& block,
                const Copy& copy) {
  copy(record + 2 * lane, &block.scale, 2);
  Record* at = record + 2 * kOut;
  if (has_minimum(format.scales)) {
    copy(at + 2 * lane, &block.minimum, 2);
    at += 2 * kOut;
  }
  if (!has_bytes(format.scales) || format.scales == BlockScales::nibbles_minimum) return;
  const int64_t groups = format.block / format.group;
  for (int64_t g = 0; g < groups; ++g) copy(at + g * kOut + lane, &block.scales[g], 1);
  if (format.scales != BlockScales::bytes_minimum) return;
  at += groups * kOut;
  for (int64_t g = 0; g < groups; ++g) copy(at + g * kOut + lane, &block.minimums[g], 1);
}

// Scales and minimums of four bits follow the two f16.
constexpr int64_t kNibblesAt = 4 * kOut;

void put_scales(const BlockFormat& format, const WeightBlock& block, int64_t lane,
                uint8_t* record) {
  each_scale(format, record, lane, block,
             [](uint8_t* at, const void* field, size_t size) { std::memcpy(at, field, size); });
  if (format.scales != BlockScales::nibbles_minimum) return;
  for (int64_t g = 0; g < 16; ++g) {
    record[kNibblesAt + g * kOut + lane] =
        static_cast<uint8_t>(block.scales[g] | block.minimums[g] << 4);
  }
}

void get_scales(const BlockFormat& format, const uint8_t* record, int64_t lane,
                WeightBlock& block) {
  each_scale(format, record, lane, block,
             [](const uint8_t* at, void* field, size_t size) { std::memcpy(field, at, size); });
  if (format.scales != BlockScales::nibbles_minimum) return;
  for (int64_t g = 0; g < 16; ++g) {
    const uint8_t both = record[kNibblesAt + g * kOut + lane];
    block.scales[g] = both & 15;
    block.minimums[g] = static_cast<int8_t>(both >> 4);
  }
}

// Decodes 16 numbers of a group; `minimum` is null if the type has none.
void decode_sixteen(const BlockFormat& format, const uint8_t* numbers, float factor,
                    const float* minimum, float* to) {
  if (format.table != nullptr) {
    for (int i = 0; i < 16; ++i) to[i] = factor * static_cast<float>(format.table[numbers[i]]);
  } else {
    for (int i = 0; i < 16; ++i) to[i] = factor * static_cast<float>(numbers[i] - format.offset);
  }
  if (minimum == nullptr) return;
  for (int i = 0; i < 16; ++i) to[i] -= *minimum;
}

int64_t part_bytes(const BlockFormat& format) { return (format.low + format.high) * kLine; }

// Returns whether all values of a block are finite; may return false although they are.
bool is_surely_finite(const BlockFormat& format, const WeightBlock& block) {
  constexpr uint16_t kHalfExponent = 0x7c00, kLargeBfloat = 0x7c00;  // 2^121, times 12 is finite
  if (format.scales == BlockScales::bfloat) return (block.scale & 0x7fff) < kLargeBfloat;
  const bool minimum =
      has_minimum(format.scales) && (block.minimum & kHalfExponent) == kHalfExponent;
  return (block.scale & kHalfExponent) != kHalfExponent && !minimum;
}

int64_t count_nonfinite(const BlockFormat& format, const WeightBlock& block) {
  float values[kMostBlock];
  decode_block(format, block, values);
  return std::count_if(values, values + format.block, [](float v) { return !std::isfinite(v); });
}

}  // namespace

const BlockFormat& block_format(WeightFormat format) {
  return kFormats[static_cast<int>(format) - static_cast<int>(WeightFormat::int8)];
}

const char* name_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::f32: return "fp32";
    case WeightFormat::bf16: return "bf16";
    case WeightFormat::int8: return "int8";
    case WeightFormat::int4: return "int4";
    default: return block_format(format).name;
  }
}

int64_t record_bytes(const BlockFormat& format) {
  const int64_t halves = has_minimum(format.scales) ? 4 : 2;
  const int64_t bytes = format.scales == BlockScales::bytes_minimum ? 2
                        : has_bytes(format.scales)                  ? 1
                                                                    : 0;
  return (halves + bytes * (format.block / format.group)) * kOut;
}

void decode_block(const BlockFormat& format, const WeightBlock& block, float* to) {
  const float scale = scale_of(format, block.scale);
  const bool bytes = has_bytes(format.scales), less = has_minimum(format.scales);
  const float minimum = less ? widen_half(block.minimum) : 0;
  for (int64_t g = 0; g < format.block / format.group; ++g) {
    const float factor = bytes ? scale * static_cast<float>(block.scales[g]) : scale;
    const float least = bytes && less ? minimum * static_cast<float>(block.minimums[g]) : minimum;
    for (int64_t i = g * format.group; i < (g + 1) * format.group; i += 16)
      decode_sixteen(format, block.numbers + i, factor, less ? &least : nullptr, to + i);
  }
}

int64_t pack_blocks(const PackedMatrix& w, std::span<const uint8_t* const> rows,
                    const BlockReader& reader, void* panels, void* scales) {
  const BlockFormat& format = block_format(w.format);
  check(w.width % format.block == 0 && w.group == kPart && std::ssize(rows) == w.outputs,
        "pack_blocks: {} rows of {} weights; expected {} rows of blocks of {}", rows.size(),
        w.width, w.outputs, format.block);
  const PutNumbers put = put_of(format);
  const int64_t blocks = w.width / format.block, record = record_bytes(format);
  if (blocks == 0) return 0;
  const int64_t parts = format.block / kPart, bytes = part_bytes(format);
  std::atomic<int64_t> nonfinite = 0;
  parallel_for(panels_of(w), 1, [&](int64_t begin, int64_t end) {
    WeightBlock block;
    for (int64_t p = begin; p < end; ++p) {
      const int64_t count = std::min(kOut, w.outputs - p * kOut);
      auto* panel = static_cast<uint8_t*>(panels) + p * panel_bytes(w);
      auto* records = static_cast<uint8_t*>(scales) + p * blocks * record;
      if (count < kOut) {
        std::memset(panel, 0, static_cast<size_t>(panel_bytes(w)));
        std::memset(records, 0, static_cast<size_t>(blocks * record));
      }
      for (int64_t b = 0; b < blocks; ++b) {
        for (int64_t lane = 0; lane < count; ++lane) {
          reader.read(rows[static_cast<size_t>(p * kOut + lane)] + b * reader.bytes, block);
          uint8_t* to = panel + b * parts * bytes + lane * 4;
          for (int64_t i = 0; i < parts; ++i) put(block.numbers + i * kPart, to + i * bytes);
          put_scales(format, block, lane, records + b * record);
          if (!is_surely_finite(format, block)) nonfinite += count_nonfinite(format, block);
        }
      }
    }
  });
  return nonfinite;
}

void unpack_block(const PackedMatrix& w, int64_t n, int64_t index, WeightBlock& block) {
  const BlockFormat& format = block_format(w.format);
  const int64_t p = n / kOut, lane = n % kOut, parts = format.block / kPart;
  const auto* from = static_cast<const uint8_t*>(w.panels) + p * panel_bytes(w) +
                     index * parts * part_bytes(format) + lane * 4;
  for (int64_t i = 0; i < parts; ++i)
    get_numbers(format, from + i * part_bytes(format), block.numbers + i * kPart);
  const auto* records = reinterpret_cast<const uint8_t*>(w.scales);
  const int64_t record = p * (w.width / format.block) + index;
  get_scales(format, records + record * record_bytes(format), lane, block);
}

}  // namespace fovea
