// Packed weights as numbers; see layout/packed.h and layout/blocks.h.

#include "kernels/cuda/dialect.h"

namespace fovea::cuda {
namespace {

constexpr int kLanes = 16;             // outputs of a panel
constexpr int kPart = 32;              // numbers along k that share lines
constexpr int kLineSize = 4 * kLanes;  // bytes

// f16 as a float, exactly.
DEVICE float widen_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, size = half & 0x7fff;
  if (size >= 0x7c00) return number_of(sign | 0x7f800000 | (size & 0x3ff) << 13);
  const float magnitude = number_of(size << 13) * 0x1p112f;  // exact for denormal numbers too
  return number_of(sign | bits_of(magnitude));
}

// A byte of a line of a panel: that of number k, of the 4 of u[k / 4 ...].
DEVICE int line_byte(const uint8_t* part, int line, int lane, int k) {
  return part[line * kLineSize + 4 * lane + k % 4];
}

// Number k of a part, with its offset.
DEVICE int number_in_part(const PackedWeights& w, const uint8_t* part, int lane, int k) {
  const int t = k / 4;
  if (w.low == 8) return line_byte(part, t, lane, k);
  int number = w.low == 4 ? line_byte(part, t % 4, lane, k) >> t / 4 * 4 & 15
                          : line_byte(part, t / 4, lane, k) >> t % 4 * 2 & 3;
  if (w.high == 2) number |= (line_byte(part, w.low + t / 4, lane, k) >> t % 4 * 2 & 3) << w.low;
  if (w.high == 1) number |= (line_byte(part, w.low, lane, k) >> t & 1) << w.low;
  return number;
}

DEVICE float block_weight(const PackedWeights& w, const uint8_t* panel, const uint8_t* records,
                          int lane, int64_t k) {
  const uint8_t* const part = panel + k / kPart * (w.low + w.high) * kLineSize;
  const int number = number_in_part(w, part, lane, static_cast<int>(k % kPart));
  const uint8_t* const record = records + k / w.block * w.record_bytes;
  const auto* const halves = reinterpret_cast<const uint16_t*>(record);
  const bool less = w.kind == BlockScales::half_minimum || w.kind == BlockScales::bytes_minimum ||
                    w.kind == BlockScales::nibbles_minimum;
  float factor =
      w.kind == BlockScales::bfloat ? widen(bf16{halves[lane]}) : widen_half(halves[lane]);
  float least = less ? widen_half(halves[kLanes + lane]) : 0;
  const uint8_t* const bytes = record + (less ? 4 : 2) * kLanes + lane;
  const auto group = static_cast<int>(k % w.block / w.group);
  const auto groups = static_cast<int>(w.block / w.group);
  if (w.kind == BlockScales::nibbles_minimum) {
    factor *= static_cast<float>(bytes[group * kLanes] & 15);
    least *= static_cast<float>(bytes[group * kLanes] >> 4);
  } else if (w.kind == BlockScales::bytes || w.kind == BlockScales::bytes_minimum) {
    factor *= static_cast<float>(static_cast<int8_t>(bytes[group * kLanes]));
    if (less) least *= static_cast<float>(static_cast<int8_t>(bytes[(groups + group) * kLanes]));
  }
  const int value = w.has_table ? w.table[number] : number - w.offset;
  const float scaled = factor * static_cast<float>(value);
  return less ? scaled - least : scaled;
}

DEVICE float integer_weight(const PackedWeights& w, const uint8_t* panel, const uint16_t* scales,
                            int lane, int64_t k) {
  const int64_t group = k / w.group, j = k % w.group, half = w.group / 2;
  int value = 0;
  if (w.format == WeightFormat::int8) {
    value = panel[(k / 4 * kLanes + lane) * 4 + k % 4] - 128;
  } else {
    const int64_t quad = group * (w.group / 8) + j % half / 4;
    value = (panel[(quad * kLanes + lane) * 4 + j % 4] >> (j < half ? 0 : 4) & 15) - 8;
  }
  return static_cast<float>(value) * widen_half(scales[group * kLanes + lane]);
}

DEVICE float weight_at(const PackedWeights& w, int64_t n, int64_t k) {
  const int64_t panel = n / kLanes;
  const auto lane = static_cast<int>(n % kLanes);
  const auto* const begin = static_cast<const uint8_t*>(w.panels) + panel * w.panel_bytes;
  if (w.format == WeightFormat::f32)
    return reinterpret_cast<const float*>(begin)[k * kLanes + lane];
  if (w.format == WeightFormat::bf16) {
    const uint32_t word = reinterpret_cast<const uint32_t*>(begin)[k / 2 * kLanes + lane];
    return number_of(k % 2 == 0 ? word & 0xffff0000u : word << 16);
  }
  if (w.block == 0) {
    const int64_t groups = (w.width + w.group - 1) / w.group;
    return integer_weight(
        w, begin, static_cast<const uint16_t*>(w.scales) + panel * groups * kLanes, lane, k);
  }
  return block_weight(
      w, begin,
      static_cast<const uint8_t*>(w.scales) + panel * (w.width / w.block) * w.record_bytes, lane,
      k);
}

}  // namespace

KERNEL(unpack_rows)(Out y, PackedWeights weights, const int32_t* rows, int64_t count) {
  for (int64_t e = first_element(); e < count * weights.width; e += element_stride()) {
    const int64_t i = e / weights.width;
    put(y, e, weight_at(weights, rows != nullptr ? rows[i] : i, e % weights.width));
  }
}

}  // namespace fovea::cuda
