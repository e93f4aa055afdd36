#include "kernels/layout/packed.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "base/threads.h"
#include "kernels/layout/bit_planes.h"
#include "kernels/layout/blocks.h"

namespace fovea {
namespace {

constexpr int64_t kOut = kPanelOutputs;

int64_t round_up(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

// Rounds to the nearest integer, ties to even, for |x| < 2^22: from 2^23 on, floats have no
// fraction. Loops that call it vectorise.
float nearest_whole(float x) {
  constexpr float kNoFraction = 12582912.0f;
  return (x + kNoFraction) - kNoFraction;
}

// The position of the k-th number of output `lane` in a panel of int8 or int4.
struct BitPosition {
  int64_t byte;
  int shift;
};
BitPosition position_of(const PackedMatrix& w, int64_t k, int64_t lane) {
  if (w.format == WeightFormat::int8) return {(k / 4 * kOut + lane) * 4 + k % 4, 0};
  const int64_t half = w.group / 2, group = k / w.group, j = k % w.group;
  const int64_t quad = group * (w.group / 8) + j % half / 4;
  return {(quad * kOut + lane) * 4 + j % 4, j < half ? 0 : 4};
}

// Returns the offset of stored numbers, which is also the stored value of 0.
constexpr int offset_of(WeightFormat format) { return format == WeightFormat::int8 ? 128 : 8; }

int whole_at(const PackedMatrix& w, const uint8_t* panel, int64_t k, int64_t lane) {
  const auto [byte, shift] = position_of(w, k, lane);
  return w.format == WeightFormat::int8 ? panel[byte] - 128 : ((panel[byte] >> shift) & 15) - 8;
}

// Reads a row in the layout of files. `numbers` receives the numbers with their offset, and padding
// up to complete groups.
void read_row(const PackedMatrix& w, const uint8_t* row, uint8_t* numbers) {
  const int64_t count = w.width;
  if (w.format == WeightFormat::int8) {
    for (int64_t i = 0; i < count; ++i) numbers[i] = row[i] ^ 0x80;
  } else {
    for (int64_t i = 0; i < count / 2; ++i) {
      numbers[2 * i] = row[i] & 15;
      numbers[2 * i + 1] = static_cast<uint8_t>(row[i] >> 4);
    }
    if (count % 2 != 0) numbers[count - 1] = row[count / 2] & 15;
  }
  std::fill(numbers + count, numbers + groups_of(w) * w.group,
            static_cast<uint8_t>(offset_of(w.format)));
}

// Returns the sum of the squared errors of x rounded to q * scale, with q from least to most.
float error_of(const float* x, int64_t count, float scale, float least, float most) {
  const float inverse = 1 / scale;
  float error = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float q = std::clamp(nearest_whole(x[i] * inverse), least, most);
    const float difference = x[i] - q * scale;
    error += difference * difference;
  }
  return error;
}

// Rounds a scale to f16.
float as_half(float scale) { return widen_half(narrow_to_half(scale)); }

// Returns the largest magnitude; processes sixteen numbers at a time, so that the loop vectorises.
float largest_magnitude(const float* x, int64_t count) {
  float most[16] = {};
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    for (int64_t j = 0; j < 16; ++j) most[j] = std::max(most[j], std::abs(x[i + j]));
  for (; i < count; ++i) most[0] = std::max(most[0], std::abs(x[i]));
  return *std::max_element(most, most + 16);
}

float best_scale(const float* x, int64_t count, WeightFormat format) {
  if (format == WeightFormat::int8) return as_half(largest_magnitude(x, count) / 127);
  float extreme = 0;  // the number of largest magnitude, with its sign
  for (int64_t i = 0; i < count; ++i)
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
  // The scale may have either sign: -8 has a larger magnitude than 7. A divisor of larger magnitude
  // gives finer steps but clips the largest numbers; one of smaller magnitude gives coarser steps.
  const float first = as_half(extreme / -8);
  if (first == 0 || !std::isfinite(first)) return first;
  float best = first, least = error_of(x, count, first, -8, 7);
  for (const float divisor : {-8.5f, -7.75f, -7.5f, -7.25f, -7.0f, -6.75f, -6.5f, -6.0f, 7.5f, 7.0f,
                              6.75f, 6.5f, 6.25f, 6.0f}) {
    const float scale = as_half(extreme / divisor);
    if (scale == 0) continue;
    const float error = error_of(x, count, scale, -8, 7);
    if (error < least) best = scale, least = error;
  }
  return best;
}

// Returns how many of `count` floats or bf16 have all bits of the exponent set: NaN and infinity.
template <class Bits>
int64_t count_full_exponents(const void* numbers, int64_t count, Bits exponent) {
  int64_t full = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, static_cast<const Bits*>(numbers) + i, sizeof bits);
    full += (bits & exponent) == exponent ? 1 : 0;
  }
  return full;
}

// The rows of the matrix that form a panel: `count` rows, at most 16, from `begin`.
struct PanelRows {
  int64_t begin, count;
};
PanelRows rows_of(const PackedMatrix& w, int64_t panel) {
  const int64_t begin = panel * kOut;
  return {begin, std::min(kOut, w.outputs - begin)};
}

// Packs the words of a panel; words_of(lane, begin, end, to) writes the words of a row from `begin`
// to `end`.
template <class WordsOf>
void pack_words(int64_t rows, int64_t words, uint8_t* panel, const WordsOf& words_of) {
  constexpr int64_t kStep = 64;
  alignas(64) uint32_t block[kOut * kStep] = {};
  for (int64_t begin = 0; begin < words; begin += kStep) {
    const int64_t end = std::min(words, begin + kStep);
    for (int64_t lane = 0; lane < rows; ++lane) words_of(lane, begin, end, block + lane * kStep);
    interleave(block, kStep, end - begin, panel + begin * kLineBytes);
  }
}

int64_t words_of_row(const PackedMatrix& w) {
  return w.format == WeightFormat::f32 ? w.width : (w.width + 1) / 2;
}

void pack_float_panel(const PackedMatrix& w, const float* rows, int64_t count, uint8_t* panel) {
  const auto row = [&](int64_t lane) { return rows + lane * w.width; };
  if (w.format == WeightFormat::f32) {
    pack_words(count, words_of_row(w), panel,
               [&](int64_t lane, int64_t begin, int64_t end, uint32_t* to) {
                 std::memcpy(to, row(lane) + begin, static_cast<size_t>(end - begin) * sizeof *to);
               });
    return;
  }
  const auto pairs = [&](int64_t lane, int64_t begin, int64_t end, uint32_t* to) {
    for (int64_t k = 2 * begin; k < 2 * end; k += 2) {
      const uint32_t later = k + 1 < w.width ? narrow(row(lane)[k + 1]).bits : 0;
      *to++ = static_cast<uint32_t>(narrow(row(lane)[k]).bits) << 16 | later;
    }
  };
  pack_words(count, words_of_row(w), panel, pairs);
}

// Packs bf16 rows as words of two.
void pack_bf16_panel(const PackedMatrix& w, const bf16* rows, int64_t count, uint8_t* panel) {
  const auto pairs = [&](int64_t lane, int64_t begin, int64_t end, uint32_t* to) {
    const bf16* row = rows + lane * w.width;
    const int64_t complete = std::min(end, w.width / 2);
    for (int64_t i = begin; i < complete; ++i, ++to) {
      std::memcpy(to, row + 2 * i, sizeof *to);
      *to = *to << 16 | *to >> 16;
    }
    if (complete < end) *to = static_cast<uint32_t>(row[w.width - 1].bits) << 16;
  };
  pack_words(count, words_of_row(w), panel, pairs);
}

// Rounds a row: `numbers` receives complete groups, including the offset.
void quantize_row(const PackedMatrix& w, const float* row, uint8_t* numbers, uint16_t* scales) {
  const int offset = offset_of(w.format);
  const int64_t complete = w.width / w.group, begin = complete * w.group;
  cpu_kernels().quantize_groups(w.format, row, complete, w.group, numbers, scales, kOut);
  if (begin == w.width) return;
  std::vector<int8_t> q(static_cast<size_t>(w.width - begin));
  scales[complete * kOut] = quantize_group(row + begin, w.width - begin, w.format, q.data());
  const auto last = std::transform(q.begin(), q.end(), numbers + begin, [=](int8_t number) {
    return static_cast<uint8_t>(number + offset);
  });
  std::fill(last, numbers + begin + w.group, static_cast<uint8_t>(offset));
}

// Joins the numbers of the two halves of each group, as int4 stores them.
void join_halves(uint8_t* numbers, int64_t groups, int64_t group) {
  const int64_t half = group / 2;
  uint8_t* to = numbers;
  for (int64_t g = 0; g < groups; ++g, numbers += group) {
    for (int64_t i = 0; i < half; i += 8, to += 8) {
      uint64_t lower, upper;
      std::memcpy(&lower, numbers + i, sizeof lower);
      std::memcpy(&upper, numbers + half + i, sizeof upper);
      lower |= upper << 4;
      std::memcpy(to, &lower, sizeof lower);
    }
  }
}

// Packs a panel of int8 or int4; read_row(lane, numbers) sets the numbers of a row, including their
// offset and padding.
template <class ReadRow>
void pack_rows(const PackedMatrix& w, int64_t count, uint8_t* panel, const ReadRow& read_row) {
  const int64_t words = groups_of(w) * w.group / 4;
  const int64_t stride = words + 16;  // not a power of two, so that rows do not share cache sets
  std::vector<uint32_t> all(static_cast<size_t>(kOut * stride));
  for (int64_t lane = 0; lane < kOut; ++lane) {
    auto* numbers = reinterpret_cast<uint8_t*>(all.data() + lane * stride);
    if (lane < count)
      read_row(lane, numbers);
    else
      std::fill_n(numbers, 4 * words, static_cast<uint8_t>(offset_of(w.format)));
    if (w.format == WeightFormat::int4) join_halves(numbers, groups_of(w), w.group);
  }
  interleave(all.data(), stride, w.format == WeightFormat::int4 ? words / 2 : words, panel);
}

}  // namespace

int64_t group_size(int64_t group, int64_t width) {
  if (group > 0) return group;
  constexpr int64_t kMostWidth = 65536;  // products are at most 255 * 127, and sums have 32 bits
  if (width > kMostWidth) {
    fail(ErrorKind::Unsupported, "int8: a row of {} weights; expected at most {} with one scale",
         width, kMostWidth);
  }
  return std::max(kMostGroup, round_up(width, kMostGroup));
}

int64_t panel_bytes(const PackedMatrix& w) {
  if (is_block_type(w.format)) {
    const BlockFormat& format = block_format(w.format);
    return w.width * kOut / 8 * (format.low + format.high);
  }
  switch (w.format) {
    case WeightFormat::f32: return w.width * kOut * 4;
    case WeightFormat::bf16: return round_up(w.width, 32) * kOut * 2;
    case WeightFormat::int8: return groups_of(w) * w.group * kOut;
    default: return groups_of(w) * w.group * kOut / 2;
  }
}

int64_t scale_bytes(const PackedMatrix& w) {
  if (is_block_type(w.format)) {
    const BlockFormat& format = block_format(w.format);
    return panels_of(w) * (w.width / format.block) * record_bytes(format);
  }
  return is_quantized(w.format) ? panels_of(w) * groups_of(w) * kOut * 2 : 0;
}

void check_packed_gemm(const PackedMatrix& w, const GemmShape& shape) {
  const bool matches = shape.transpose_b ? shape.n == w.outputs && shape.k == w.width
                                         : shape.n == w.width && shape.k == w.outputs;
  check(!shape.transpose_a && shape.units.count == 1 && matches,
        "packed_gemm: the matrix is [{}, {}], n is {}, k is {}, {} units, a is {}transposed; "
        "expected n and k of the matrix, 1 unit and a [m, k]",
        w.outputs, w.width, shape.n, shape.k, shape.units.count, shape.transpose_a ? "" : "not ");
}

PackedMatrix outputs_of(const PackedMatrix& w, int64_t begin, int64_t end) {
  check(begin % kOut == 0 && 0 <= begin && begin <= end && end <= w.outputs,
        "outputs_of: {} to {} of {}; expected a multiple of {} and at most all", begin, end,
        w.outputs, kOut);
  PackedMatrix part = w;
  part.outputs = end - begin;
  const int64_t panel = begin / kOut, panels = panels_of(w);
  part.panels = static_cast<const uint8_t*>(w.panels) + panel * panel_bytes(w);
  if (panels > 0 && w.scales != nullptr)
    part.scales = w.scales + panel * (scale_bytes(w) / 2 / panels);
  return part;
}

uint16_t quantize_group(const float* x, int64_t count, WeightFormat format, int8_t* q) {
  const float scale = best_scale(x, count, format);
  // If the scale is 0 or not finite, all integers are 0.
  const float inverse = scale == 0 || !std::isfinite(scale) ? 0 : 1 / scale;
  const float least = format == WeightFormat::int8 ? -127 : -8;
  const float most = format == WeightFormat::int8 ? 127 : 7;
  for (int64_t i = 0; i < count; ++i)
    q[i] = static_cast<int8_t>(
        inverse == 0 ? 0.0f : std::clamp(nearest_whole(x[i] * inverse), least, most));
  return narrow_to_half(scale);
}

int64_t pack_panels(const PackedMatrix& w, In matrix, int64_t begin, int64_t end, void* panels,
                    uint16_t* scales) {
  check(!is_block_type(w.format), "pack_panels: the weights are floats; expected no block type");
  std::vector<float> floats;
  int64_t nonfinite = 0;
  for (int64_t p = begin; p < end; ++p) {
    const auto [first, count] = rows_of(w, p);
    const int64_t size = count * w.width, end_of_panel = panel_bytes(w);
    auto* panel = static_cast<uint8_t*>(panels) + p * end_of_panel;
    if (const int64_t used = words_of_row(w) * kLineBytes;
        !is_quantized(w.format) && used < end_of_panel)
      std::memset(panel + used, 0, static_cast<size_t>(end_of_panel - used));  // bf16's padding
    const float* rows = static_cast<const float*>(matrix.data) + first * w.width;
    if (matrix.dtype == DType::bf16) {
      const bf16* halves = static_cast<const bf16*>(matrix.data) + first * w.width;
      nonfinite += count_full_exponents<uint16_t>(&halves->bits, size, 0x7f80u);
      if (w.format == WeightFormat::bf16) {
        pack_bf16_panel(w, halves, count, panel);
        continue;
      }
      floats.resize(static_cast<size_t>(size));
      std::transform(halves, halves + size, floats.begin(), widen);
      rows = floats.data();
    } else if (matrix.dtype == DType::f16) {
      const uint16_t* halves = static_cast<const uint16_t*>(matrix.data) + first * w.width;
      nonfinite += count_full_exponents<uint16_t>(halves, size, 0x7c00u);
      floats.resize(static_cast<size_t>(size));
      std::transform(halves, halves + size, floats.begin(), widen_half);
      rows = floats.data();
    } else {
      nonfinite += count_full_exponents<uint32_t>(rows, size, 0x7f800000u);
    }
    if (!is_quantized(w.format)) {
      pack_float_panel(w, rows, count, panel);
      continue;
    }
    uint16_t* panel_scales = scales + p * groups_of(w) * kOut;
    std::fill_n(panel_scales, groups_of(w) * kOut, uint16_t{0});
    pack_rows(w, count, panel, [&](int64_t lane, uint8_t* numbers) {
      quantize_row(w, rows + lane * w.width, numbers, panel_scales + lane);
    });
  }
  return nonfinite;
}

int64_t pack(const PackedMatrix& w, In matrix, void* panels, uint16_t* scales) {
  std::atomic<int64_t> nonfinite = 0;
  parallel_for(panels_of(w), 1, [&](int64_t begin, int64_t end) {
    nonfinite += pack_panels(w, matrix, begin, end, panels, scales);
  });
  return nonfinite;
}

void pack_quantized(const PackedMatrix& w, const uint8_t* rows, const uint16_t* row_scales,
                    void* panels, uint16_t* scales) {
  const int64_t row_bytes = quantized_row_bytes(w), groups = groups_of(w);
  parallel_for(panels_of(w), 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = rows_of(w, p).begin, count = rows_of(w, p).count;
      uint16_t* panel_scales = scales + p * groups * kOut;
      std::fill_n(panel_scales, groups * kOut, uint16_t{0});
      const auto read = [&](int64_t lane, uint8_t* numbers) {
        read_row(w, rows + (first + lane) * row_bytes, numbers);
        for (int64_t g = 0; g < groups; ++g)
          panel_scales[g * kOut + lane] = row_scales[(first + lane) * groups + g];
      };
      pack_rows(w, count, static_cast<uint8_t*>(panels) + p * panel_bytes(w), read);
    }
  });
}

void unpack_quantized(const PackedMatrix& w, uint8_t* rows, uint16_t* row_scales) {
  const int64_t row_bytes = quantized_row_bytes(w), groups = groups_of(w);
  std::memset(rows, 0, static_cast<size_t>(w.outputs * row_bytes));
  parallel_for(w.outputs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t p = n / kOut, lane = n % kOut;
      const auto* panel = static_cast<const uint8_t*>(w.panels) + p * panel_bytes(w);
      uint8_t* row = rows + n * row_bytes;
      for (int64_t k = 0; k < w.width; ++k) {
        const int value = whole_at(w, panel, k, lane);
        if (w.format == WeightFormat::int8)
          row[k] = static_cast<uint8_t>(value);
        else
          row[k / 2] = static_cast<uint8_t>(row[k / 2] | ((value + 8) << (k % 2 * 4)));
      }
      for (int64_t g = 0; g < groups; ++g)
        row_scales[n * groups + g] = w.scales[(p * groups + g) * kOut + lane];
    }
  });
}

void unpack_row(const PackedMatrix& w, int64_t n, float* row) {
  if (is_block_type(w.format)) {
    const BlockFormat& format = block_format(w.format);
    WeightBlock block;
    for (int64_t b = 0; b < w.width / format.block; ++b) {
      unpack_block(w, n, b, block);
      decode_block(format, block, row + b * format.block);
    }
    return;
  }
  const int64_t p = n / kOut, lane = n % kOut;
  const auto* panel = static_cast<const uint8_t*>(w.panels) + p * panel_bytes(w);
  const auto* floats = reinterpret_cast<const float*>(panel);
  const auto* halves = reinterpret_cast<const bf16*>(panel);
  for (int64_t k = 0; k < w.width; ++k) {
    if (w.format == WeightFormat::f32) {
      row[k] = floats[k * kOut + lane];
    } else if (w.format == WeightFormat::bf16) {
      row[k] = widen(halves[(k / 2 * kOut + lane) * 2 + 1 - k % 2]);
    } else {
      const uint16_t scale = w.scales[(p * groups_of(w) + k / w.group) * kOut + lane];
      row[k] = static_cast<float>(whole_at(w, panel, k, lane)) * widen_half(scale);
    }
  }
}

}  // namespace fovea
