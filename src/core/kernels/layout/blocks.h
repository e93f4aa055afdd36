#pragma once

// The block types of GGUF files as formats of packed weights. A weight is
//
//   scale * (number - offset)  or  scale * table[number],  minus a minimum in some types,
//
// where `number` has 2 to 8 bits, and the scale and the minimum belong to a group of 16 or 32
// weights along k. The types with blocks of 256 weights (Q2_K to Q6_K, IQ4_XS) have one f16 scale
// and one f16 minimum for each block, and small integers, which multiply them, for each group.
// Packing changes the order of the bits, but no number.
//
// A panel consists of lines of 64 bytes: 4 bytes for each of 16 outputs. 32 weights along k take as
// many lines as a number has bits. If u[t] are the 4 numbers 4 t to 4 t + 3 (one per byte), then:
//
//   8 bits     line t             u[t]
//   low 4      line l = 0 to 3    u[l] in the lower halves of the bytes, u[l + 4] in the upper ones
//   low 2      line l = 0 to 1    u[4 l + f] in bits 2 f and 2 f + 1
//   high 2     line l = 0 to 1    the same for the bits above the low ones
//   high 1     one line           u[t] in bit t
//
// The scales of a panel are [K / block] records, each an array of 16 outputs for each item:
//
//   half             f16 scale
//   half_minimum     f16 scale, f16 minimum
//   bfloat           bf16 scale
//   bytes            f16 scale; for each group an i8
//   bytes_minimum    f16 scale, f16 minimum; for each group an i8; for each group a minimum (i8)
//   nibbles_minimum  f16 scale, f16 minimum; for each group a byte: scale + 16 * minimum

#include <span>

#include "kernels/layout/packed.h"

namespace fovea {

enum class BlockScales : uint8_t {
  half,
  half_minimum,
  bfloat,
  bytes,
  bytes_minimum,
  nibbles_minimum
};

struct BlockFormat {
  const char* name;  // as in GGUF files
  int64_t block;     // weights per record of scales, at most kMostBlock
  int64_t group;     // weights per scale
  int low, high;     // bits of a number
  int offset;        // subtracted from numbers
  BlockScales scales;
  const int8_t* table = nullptr;  // 16 values that replace the numbers
};
constexpr int64_t kMostBlock = 256;
constexpr int kTableOffset = 128;  // kernels add this to a table's values, to make them unsigned

// Whether kernels/layout/blocks.h describes the panels: the block types, and int8 and int4, which
// are Q8_0 and Q4_0 if the group is 32.
inline bool has_blocks(WeightFormat format) { return format >= WeightFormat::int8; }
// Whether products round activations to integers.
inline bool has_integers(WeightFormat format) { return format >= WeightFormat::int8; }
// Whether weights of this format come from GGUF files only.
inline bool is_block_type(WeightFormat format) { return format > WeightFormat::int4; }
inline bool has_minimum(BlockScales scales) {
  return scales == BlockScales::half_minimum || scales == BlockScales::bytes_minimum ||
         scales == BlockScales::nibbles_minimum;
}

const BlockFormat& block_format(WeightFormat format);  // has_blocks(format)
const char* name_of(WeightFormat format);         // "fp32", "bf16", "int8", "int4", "Q4_K", ...
int64_t record_bytes(const BlockFormat& format);  // bytes of the scales of 16 blocks

// One block of a row: numbers without offset, and the bits of its scales. `minimum` times
// `minimums[g]` is subtracted. Types without super-blocks leave `scales` and `minimums` unset.
struct WeightBlock {
  uint8_t numbers[kMostBlock];
  uint16_t scale, minimum;
  int8_t scales[16], minimums[16];
};

// The layout of blocks in a file: the bytes of a block, and a function that reads it.
struct BlockReader {
  int64_t bytes;
  void (*read)(const uint8_t* from, WeightBlock& to);
};

// Writes the values of a block to `to`: the numbers that ggml decodes, bit for bit.
void decode_block(const BlockFormat& format, const WeightBlock& block, float* to);

// The scale of an MXFP4 block with this exponent: 2^(exponent - 128), half of the usual value,
// since the table of values is doubled.
uint16_t mxfp4_scale(uint8_t exponent);

// The rows of a matrix in blocks.
struct BlockRows {
  std::span<const uint8_t* const> begins;  // of the first block of each output
  BlockReader reader;
  // The exponents of the blocks of each output, of MXFP4 blocks without them; empty = in the
  // blocks.
  std::span<const uint8_t* const> exponents = {};
};

// Packs the panels from `begin` to `end` of w, whose width consists of complete blocks. Returns the
// number of weights that are infinite or NaN, because of the scales of their blocks.
int64_t pack_panels(const PackedMatrix& w, const BlockRows& rows, int64_t begin, int64_t end,
                    void* panels, void* scales);

// Returns the number of weights of a matrix of this width that are infinite or NaN.
int64_t count_nonfinite(const BlockFormat& format, const BlockRows& rows, int64_t width);

// The inverse for one block: block `index` of row n.
void unpack_block(const PackedMatrix& w, int64_t n, int64_t index, WeightBlock& block);

}  // namespace fovea
