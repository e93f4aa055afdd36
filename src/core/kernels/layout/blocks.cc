#include "kernels/layout/blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/half.h"
#include "kernels/layout/bit_planes.h"

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

// Sets `to` to the bits of 32 numbers of an output in the lines of a panel.
template <int kLow, int kHigh>
void put_part(const uint8_t* numbers, uint32_t* to) {
  if constexpr (kLow == 8) std::memcpy(to, numbers, 32);
  if constexpr (kLow == 4) join_nibbles(numbers, to);
  if constexpr (kLow == 2)
    for (int l = 0; l < 2; ++l) to[l] = quarters(numbers + 16 * l, 0);
  if constexpr (kHigh == 2)
    for (int l = 0; l < 2; ++l) to[kLow + l] = quarters(numbers + 16 * l, kLow);
  if constexpr (kHigh == 1) to[kLow] = eighths(numbers, kLow);
}

// The same for the `count` numbers of a block.
template <int kLow, int kHigh>
void put_words(const uint8_t* numbers, int64_t count, uint32_t* to) {
  for (int64_t i = 0; i < count; i += kPart, to += kLow + kHigh)
    put_part<kLow, kHigh>(numbers + i, to);
}

// The inverse of put_part(); `from` is the index of the output in the first line.
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

using PutWords = void (*)(const uint8_t* numbers, int64_t count, uint32_t* to);

PutWords words_function(const BlockFormat& format) {
  switch (10 * format.low + format.high) {
    case 80: return put_words<8, 0>;
    case 40: return put_words<4, 0>;
    case 41: return put_words<4, 1>;
    case 42: return put_words<4, 2>;
    case 20: return put_words<2, 0>;
    default: return put_words<2, 1>;
  }
}

// Bytes of the f16 or bf16 scales and minimums at the beginning of a record.
int64_t half_bytes(const BlockFormat& format) {
  return (has_minimum(format.scales) ? 4 : 2) * kOut;
}

// Sets `to` [16] to the bytes of an output in a record, one for each 16 bytes after the halves.
void bytes_of(const BlockFormat& format, const WeightBlock& block, uint8_t* to) {
  if (format.scales == BlockScales::nibbles_minimum) {
    for (int g = 0; g < 16; ++g)
      to[g] = static_cast<uint8_t>(block.scales[g] | block.minimums[g] << 4);
    return;
  }
  if (format.scales == BlockScales::bytes) return void(std::memcpy(to, block.scales, 16));
  std::memcpy(to, block.scales, 8);
  std::memcpy(to + 8, block.minimums, 8);
}

void get_scales(const BlockFormat& format, const uint8_t* record, int64_t lane,
                WeightBlock& block) {
  std::memcpy(&block.scale, record + 2 * lane, 2);
  if (has_minimum(format.scales)) std::memcpy(&block.minimum, record + 2 * (kOut + lane), 2);
  if (!has_bytes(format.scales)) return;
  const uint8_t* at = record + half_bytes(format) + lane;
  const int64_t groups = format.block / format.group;
  for (int64_t g = 0; g < groups; ++g) {
    const uint8_t byte = at[g * kOut];
    const bool nibbles = format.scales == BlockScales::nibbles_minimum;
    block.scales[g] = static_cast<int8_t>(nibbles ? byte & 15 : byte);
    if (nibbles) block.minimums[g] = static_cast<int8_t>(byte >> 4);
    if (format.scales == BlockScales::bytes_minimum)
      block.minimums[g] = static_cast<int8_t>(at[(groups + g) * kOut]);
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
  const int64_t bytes = format.scales == BlockScales::bytes_minimum ? 2
                        : has_bytes(format.scales)                  ? 1
                                                                    : 0;
  return half_bytes(format) + bytes * (format.block / format.group) * kOut;
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

namespace {

// Packs panels of a matrix, up to 256 weights of 16 rows at a time: first each row, in the order of
// the panel, then all rows are interleaved.
class PanelPacker {
 public:
  PanelPacker(const PackedMatrix& w, const BlockRows& rows)
      : w_(w),
        format_(block_format(w.format)),
        rows_(rows),
        put_words_(words_function(format_)),
        words_of_block_(format_.block / kPart * (format_.low + format_.high)),
        record_(record_bytes(format_)),
        minimums_(has_minimum(format_.scales)),
        bytes_per_scale_(has_bytes(format_.scales)) {}

  // Packs one panel, and returns the number of weights that are not finite.
  int64_t pack(int64_t index, uint8_t* panel, uint8_t* records) {
    const int64_t blocks = w_.width / format_.block, step = kMostBlock / format_.block;
    const int64_t first = index * kOut, rows = std::min(kOut, w_.outputs - first);
    if (rows < kOut) {  // the missing rows are zeros
      std::memset(records, 0, static_cast<size_t>(blocks * record_));
      std::memset(words_, 0, sizeof words_);
      std::memset(bytes_, 0, sizeof bytes_);
    }
    int64_t nonfinite = 0;
    for (int64_t b = 0; b < blocks; b += step, records += step * record_) {
      const int64_t count = std::min(step, blocks - b), words = count * words_of_block_;
      for (int64_t lane = 0; lane < rows; ++lane) {
        const uint8_t* row = rows_.begins[static_cast<size_t>(first + lane)];
        const uint8_t* exponents = rows_.exponents.empty()
                                       ? nullptr
                                       : rows_.exponents[static_cast<size_t>(first + lane)] + b;
        nonfinite += read_row(row + b * rows_.reader.bytes, exponents, lane, count, records);
      }
      interleave(words_, kWords, words, panel);
      if (bytes_per_scale_) {  // then `count` is 1
        const int64_t halves = half_bytes(format_);
        put_columns(bytes_, (record_ - halves) / kOut, records + halves);
      }
      panel += words * kLine;
    }
    return nonfinite;
  }

 private:
  static constexpr int64_t kWords = kMostBlock / 4;  // of an output, for 256 weights of 8 bits

  // Reads consecutive blocks of an output; `exponents` may be null.
  int64_t read_row(const uint8_t* from, const uint8_t* exponents, int64_t lane, int64_t count,
                   uint8_t* records) {
    uint32_t* words = words_ + lane * kWords;
    int64_t nonfinite = 0;
    for (int64_t i = 0; i < count; ++i, from += rows_.reader.bytes) {
      rows_.reader.read(from, block_);
      if (exponents != nullptr) block_.scale = mxfp4_scale(exponents[i]);
      put_words_(block_.numbers, format_.block, words + i * words_of_block_);
      auto* halves = reinterpret_cast<uint16_t*>(records + i * record_);
      halves[lane] = block_.scale;
      if (minimums_) halves[kOut + lane] = block_.minimum;
      if (bytes_per_scale_) bytes_of(format_, block_, bytes_ + lane * 16);
      if (!is_surely_finite(format_, block_)) nonfinite += count_nonfinite(format_, block_);
    }
    return nonfinite;
  }

  const PackedMatrix& w_;
  const BlockFormat format_;
  const BlockRows& rows_;
  const PutWords put_words_;
  const int64_t words_of_block_, record_;
  const bool minimums_, bytes_per_scale_;
  WeightBlock block_ = {};
  alignas(64) uint32_t words_[kOut * kWords] = {};
  uint8_t bytes_[kOut * 16] = {};
};

}  // namespace

// As bf16: two subnormal numbers, then the exponent e - 1.
uint16_t mxfp4_scale(uint8_t exponent) {
  return static_cast<uint16_t>(exponent < 2 ? 0x20 << exponent : (exponent - 1) << 7);
}

int64_t pack_panels(const PackedMatrix& w, const BlockRows& rows, int64_t begin, int64_t end,
                    void* panels, void* scales) {
  const BlockFormat& format = block_format(w.format);
  check(w.width % format.block == 0 && w.group == kPart && std::ssize(rows.begins) == w.outputs,
        "pack_panels: {} rows of {} weights; expected {} rows of blocks of {}", rows.begins.size(),
        w.width, w.outputs, format.block);
  const int64_t size = panel_bytes(w), records = w.width / format.block * record_bytes(format);
  PanelPacker packer(w, rows);
  int64_t nonfinite = 0;
  for (int64_t p = begin; p < end; ++p) {
    nonfinite += packer.pack(p, static_cast<uint8_t*>(panels) + p * size,
                             static_cast<uint8_t*>(scales) + p * records);
  }
  return nonfinite;
}

int64_t count_nonfinite(const BlockFormat& format, const BlockRows& rows, int64_t width) {
  int64_t nonfinite = 0;
  WeightBlock block;
  for (size_t r = 0; r < rows.begins.size(); ++r) {
    const uint8_t* row = rows.begins[r];
    for (int64_t k = 0; k < width; k += format.block, row += rows.reader.bytes) {
      rows.reader.read(row, block);
      if (!rows.exponents.empty()) block.scale = mxfp4_scale(rows.exponents[r][k / format.block]);
      if (!is_surely_finite(format, block)) nonfinite += count_nonfinite(format, block);
    }
  }
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
