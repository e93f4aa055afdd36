#pragma once

// The layout of weights for inference. A panel is 16 outputs of a matrix W [N, K], side by side, in
// the order of k: the lanes of a vector are outputs, no sum crosses lanes, and a product with one
// row of x reads the weights once, from beginning to end. A panel consists of complete cache lines;
// K and N are padded with zeros:
//
//   f32   [K][16]            weights
//   bf16  [K/2][16]          words of two weights, the earlier k in the upper half; K is rounded
//                            up to a multiple of 32, the depth of AMX's tiles
//   int8  [K/4][16][4]       bytes w + 128, w = -128 to 127
//   int4  [K/G][G/8][16][4]  bytes of two numbers w + 8, w = -8 to 7: number j of a group of G
//                            along k is in the low half of byte j (if j < G/2) or the high
//                            half of byte j - G/2 of its output
//
// The last two represent w * scale; their scales are f16 [K/G][16] for each panel. The offsets make
// bytes unsigned, as the dot product instructions require for one operand. blocks.h describes the
// formats of GGUF files.

#include "kernels/kernels.h"

namespace fovea {

constexpr int64_t kPanelOutputs = 16;
// A group of activations whose largest magnitude is below this limit counts as zeros: 127 / 0 is
// infinite.
constexpr float kLeastActivation = 1e-30f;

inline bool is_quantized(WeightFormat format) {
  return format == WeightFormat::int8 || format == WeightFormat::int4;
}
constexpr int64_t kMostGroup = 64;  // in larger groups, a scale belongs to a whole row
// Returns the number of weights per scale: `group`, which is 32 or 64, or, if it is 0, a row of
// `width` weights, rounded up to a multiple of 64 (int8 only). Throws Unsupported if the integer
// sums of a whole row could overflow.
int64_t group_size(int64_t group, int64_t width);
constexpr int bits_of(WeightFormat format) { return format == WeightFormat::int4 ? 4 : 8; }

inline int64_t panels_of(const PackedMatrix& w) {
  return (w.outputs + kPanelOutputs - 1) / kPanelOutputs;
}
inline int64_t groups_of(const PackedMatrix& w) { return (w.width + w.group - 1) / w.group; }
int64_t panel_bytes(const PackedMatrix& w);  // bytes of one panel's weights
int64_t scale_bytes(const PackedMatrix& w);  // bytes of all scales

// Rounds the panels from `begin` to `end` of a matrix [N, K] of f32, bf16 or f16 to w's format,
// which must not be a block type, and writes them to their slots in `panels` and `scales`. Returns
// the number of weights that are infinite or NaN; quantised panels are then of no use.
int64_t pack_panels(const PackedMatrix& w, In matrix, int64_t begin, int64_t end, void* panels,
                    uint16_t* scales);
// Packs all panels, on all threads.
int64_t pack(const PackedMatrix& w, In matrix, void* panels, uint16_t* scales);

// Convert between panels and quantised weights as files store them: int8 rows [N, K]; int4 rows [N,
// ceil(K/2)], each byte with two numbers w + 8, that of the even k in the low half; scales f16 [N,
// ceil(K/G)].
void pack_quantized(const PackedMatrix& w, const uint8_t* rows, const uint16_t* row_scales,
                    void* panels, uint16_t* scales);
void unpack_quantized(const PackedMatrix& w, uint8_t* rows, uint16_t* row_scales);
inline int64_t quantized_row_bytes(const PackedMatrix& w) {
  return w.format == WeightFormat::int4 ? (w.width + 1) / 2 : w.width;
}

// Checks the arguments of packed_gemm(); see Kernels.
void check_packed_gemm(const PackedMatrix& w, const GemmShape& shape);

// Returns the outputs [begin, end) of w, where `begin` is a multiple of 16; shares its memory.
PackedMatrix outputs_of(const PackedMatrix& w, int64_t begin, int64_t end);

// Writes row n of the matrix that w represents to row [K].
void unpack_row(const PackedMatrix& w, int64_t n, float* row);

// Rounds `count` numbers to integers, -127 to 127 for int8 or -8 to 7 for int4, with one scale.
// Returns the scale as f16. int8: the largest magnitude / 127, as in ggml's Q8_0. int4: the one of
// several candidates with the least sum of squared errors; the first candidate is that of ggml's
// Q4_0.
uint16_t quantize_group(const float* x, int64_t count, WeightFormat format, int8_t* q);

}  // namespace fovea
