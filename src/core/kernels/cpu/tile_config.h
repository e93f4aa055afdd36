#pragma once

#include <cstdint>

namespace fovea::cpu {

constexpr int64_t kTileSide = 16;   // rows of a tile, and columns of its 4-byte words
constexpr int64_t kTileDepth = 32;  // k of one product of bf16; that of bytes has twice as many
constexpr int64_t kTileBytes = 1024;

// The configuration of the registers for ldtilecfg. Registers 0 to 3 hold sums, 4 and 5 hold A, 6
// and 7 hold B.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void set(int tile, int64_t count) {
    row_bytes[tile] = count > 0 ? 64 : 0;
    rows[tile] = static_cast<uint8_t>(count);
  }
};

}  // namespace fovea::cpu
