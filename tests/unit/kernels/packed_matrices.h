#pragma once

// Random matrices in every format of packed weights.

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "kernels/layout/blocks.h"
#include "kernels/layout/packed.h"
#include "support/gpu.h"

namespace fovea::packed_test {

inline constexpr WeightFormat kBlockTypes[] = {
    WeightFormat::q4_1,   WeightFormat::q5_0,   WeightFormat::q5_1, WeightFormat::q2_k,
    WeightFormat::q3_k,   WeightFormat::q4_k,   WeightFormat::q5_k, WeightFormat::q6_k,
    WeightFormat::iq4_nl, WeightFormat::iq4_xs, WeightFormat::mxfp4};

inline constexpr WeightFormat kAllFormats[] = {
    WeightFormat::f32,    WeightFormat::bf16,   WeightFormat::int8, WeightFormat::int4,
    WeightFormat::q4_1,   WeightFormat::q5_0,   WeightFormat::q5_1, WeightFormat::q2_k,
    WeightFormat::q3_k,   WeightFormat::q4_k,   WeightFormat::q5_k, WeightFormat::q6_k,
    WeightFormat::iq4_nl, WeightFormat::iq4_xs, WeightFormat::mxfp4};

// Rounds a width up to complete blocks.
inline int64_t width_for(WeightFormat format, int64_t width) {
  if (!is_block_type(format)) return width;
  const int64_t block = block_format(format).block;
  return (width + block - 1) / block * block;
}

inline std::vector<float> random_floats(int64_t count, unsigned seed, float deviation = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

// Random blocks whose weights are at most about 0.5.
inline std::vector<WeightBlock> random_blocks(WeightFormat type, int64_t count, unsigned seed) {
  const BlockFormat& format = block_format(type);
  std::mt19937 random(seed);
  std::vector<WeightBlock> blocks(static_cast<size_t>(count), WeightBlock{});
  const int most = type == WeightFormat::q6_k ? 128 : type == WeightFormat::q2_k ? 8 : 32;
  const bool bytes = format.block == kMostBlock;
  const bool is_signed = format.scales == BlockScales::bytes;
  const auto small = [&] {
    return static_cast<float>(random() % 1000 + 100) / 1100 / static_cast<float>(bytes ? most : 1);
  };
  for (WeightBlock& block : blocks) {
    for (uint8_t& number : block.numbers)
      number = static_cast<uint8_t>(random() % (1u << (format.low + format.high)));
    const float range = format.table != nullptr
                            ? (type == WeightFormat::mxfp4 ? 12.0f : 127.0f)
                            : static_cast<float>(1 << (format.low + format.high));
    block.scale = format.scales == BlockScales::bfloat
                      ? static_cast<uint16_t>((119 + random() % 4) << 7)  // 2^-8 to 2^-5
                      : narrow_to_half(small() / range);
    block.minimum = narrow_to_half(0.5f * small());
    if (!bytes) continue;
    for (int g = 0; g < 16; ++g) {
      block.scales[g] =
          static_cast<int8_t>(static_cast<int>(random() % (2 * most)) - (is_signed ? most : 0));
      block.minimums[g] = static_cast<int8_t>(random() % (2 * most));
    }
  }
  return blocks;
}

inline constexpr BlockReader kCopiedBlocks = {
    sizeof(WeightBlock),
    [](const uint8_t* from, WeightBlock& to) { std::memcpy(&to, from, sizeof to); }};

// A packed matrix and its memory.
struct Packed {
  PackedMatrix w;
  std::vector<float> floats;        // values before packing
  std::vector<WeightBlock> blocks;  // the same for block types
  int64_t nonfinite = 0;            // of `blocks`
  test::SharedVector<uint8_t> memory;
  test::SharedVector<uint16_t> scales;

  Packed(WeightFormat format, int64_t outputs, int64_t width, int64_t group = 32)
      : floats(random_floats(outputs * width, 2, 0.1f)) {
    w.format = format, w.outputs = outputs, w.width = width;
    w.group = group_size(group, width);
    allocate();
    if (is_block_type(format)) {
      pack_random_blocks();
      return;
    }
    pack(w, {floats.data(), DType::f32}, const_cast<void*>(w.panels), scales.data());
  }
  void allocate() {
    memory.resize(static_cast<size_t>(panels_of(w) * panel_bytes(w)) + 64);
    scales.resize(static_cast<size_t>(scale_bytes(w)) / 2);
    w.panels = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
    w.scales = scales.data();
  }
  void pack_random_blocks() {
    const BlockFormat& format = block_format(w.format);
    const int64_t each = w.width / format.block;
    blocks = random_blocks(w.format, w.outputs * each, 2);
    pack_again();
    for (size_t i = 0; i < blocks.size(); ++i)
      decode_block(format, blocks[i], floats.data() + i * static_cast<size_t>(format.block));
  }
  void pack_again() {
    std::vector<const uint8_t*> starts;
    const int64_t each = w.width / block_format(w.format).block;
    for (int64_t n = 0; n < w.outputs; ++n)
      starts.push_back(reinterpret_cast<const uint8_t*>(blocks.data() + n * each));
    void* panels = const_cast<void*>(w.panels);
    nonfinite = pack_panels(w, {starts, kCopiedBlocks}, 0, panels_of(w), panels, scales.data());
  }
  std::vector<float> rows() const {
    std::vector<float> all(static_cast<size_t>(w.outputs * w.width));
    for (int64_t n = 0; n < w.outputs; ++n) unpack_row(w, n, all.data() + n * w.width);
    return all;
  }
};

inline std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> all;
  for (const float value : values) all.push_back(std::bit_cast<uint32_t>(value));
  return all;
}

}  // namespace fovea::packed_test
