#pragma once

// The arguments of the kernels of linear attention and of its short convolutions. Letters: H heads,
// G key heads, D width of a query and a key, V width of a value, P = V, rounded up to a multiple
// of 16.

#include <cstdint>

#include "kernels/entry.h"

namespace fovea {

// Tokens of a chunk. The first chunk of a text begins at its first token, so that a token's place
// in its chunk does not depend on how a text is divided into passes.
inline constexpr int64_t kChunkTokens = 64;

struct LinearAttention {
  int64_t heads = 0, key_heads = 0;    // H, G
  int64_t width = 0, value_width = 0;  // D, V
  float scale = 1;                     // factor of the queries
  bool delta = true;                   // whether values are corrected by the delta rule
  bool tiled = false;                  // head h reads the key head h % G instead of h / (H / G)

  int64_t group() const { return heads / key_heads; }
  int64_t key_head(int64_t head) const { return tiled ? head % key_heads : head / group(); }
  // Returns the i-th head that reads a key head.
  int64_t head_of(int64_t key_head, int64_t i) const {
    return tiled ? i * key_heads + key_head : key_head * group() + i;
  }
  int64_t padded_values() const { return (value_width + 15) / 16 * 16; }  // P
  // The numbers of a chunk's arrays.
  int64_t state_size() const { return heads * width * padded_values(); }
  int64_t keys_size() const { return key_heads * width * kChunkTokens; }
  int64_t values_size() const { return kChunkTokens * heads * padded_values(); }
  int64_t decays_size() const { return kChunkTokens * heads; }
};

// What is kept of a chunk, in the working type. Only the tokens that a text has are written, and
// the padding of states and values is 0.
struct LinearChunk {
  Out state;   // [H, D, P]: the states before the chunk
  Out keys;    // [G, D, 64]
  Out values;  // [64, H, P]: u
  Out decays;  // [64, H]: the sums of the log decays from the chunk's first token on

  void show_arrays(DeviceOfCall& call) const {
    for (const Out& part : {state, keys, values, decays}) call.meet(part);
  }
};

// One text of a ragged batch: the rows [row, row + tokens) are its tokens from `position` on. Chunk
// i has the tokens from 64 i on; the chunk of the token before `position` and all later ones are
// read.
struct LinearText {
  int64_t row = 0, tokens = 0, position = 0;
  const LinearChunk* chunks = nullptr;

  int64_t end() const { return position + tokens; }
  void show_arrays(DeviceOfCall& call) const {
    if (tokens > 0) call.meet(chunks[position / kChunkTokens]);
  }
};

// The tokens [begin, begin + count) of a chunk, in the rows from `row` on.
struct LinearPiece {
  int64_t chunk = 0, begin = 0, count = 0, row = 0;
};
// Calls body(piece) for the chunks of a text that have tokens of this pass, in ascending order.
template <class Body>
void each_piece(const LinearText& text, const Body& body) {
  for (int64_t t = text.position; t < text.end();) {
    const int64_t begin = t % kChunkTokens;
    const int64_t count =
        begin + text.end() - t < kChunkTokens ? text.end() - t : kChunkTokens - begin;
    body(LinearPiece{t / kChunkTokens, begin, count, text.row + t - text.position});
    t += count;
  }
}

struct LinearGradients {
  Out dq, dk, dv, dbeta, ddecay;

  void show_arrays(DeviceOfCall& call) const {
    for (const Out& y : {dq, dk, dv, dbeta, ddecay}) call.meet(y);
  }
};

// One text of a ragged batch of causal_conv: the rows [row, row + tokens), after the `kernel` - 1
// rows `before` [kernel - 1, C], or zeros if it is null.
struct ConvText {
  int64_t row = 0, tokens = 0;
  In before;

  void show_arrays(DeviceOfCall& call) const { call.meet(before); }
};
struct CausalConv {
  int64_t width = 0, kernel = 1;  // C, K
};

}  // namespace fovea
