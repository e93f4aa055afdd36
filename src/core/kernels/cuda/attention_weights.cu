// The attention weights for inspection; see cpu/attention/weights.cc.

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/rows.cuh"

namespace fovea::cuda {

namespace {
constexpr int kPartialSums = 16;  // of a row, by the first lanes of a warp
}

KERNEL(attention_scores)(Out w, In q, In k, AttentionCall call) {
  SHARED(AttentionTiles, shared);
  const int64_t batch = block_y() / call.kv_heads, kv_head = block_y() % call.kv_heads;
  const int64_t tiles = (call.keys + kTile - 1) / kTile;
  const OwnRows rows(call, batch, kv_head, block_x() / tiles * kTile);
  const int64_t tile = block_x() % tiles * kTile;
  const RowsOfHead keys(k, call, batch, kv_head, call.width);
  Sums scores;
  const bool seen = rows.see_tile(tile);
  if (seen) {
    multiply_rows(scores, shared.tiles, {q, call.width, call.factor}, rows, keys, tile, call.width);
    bend_scores(scores, rows, call, batch, tile, nullptr);
  }
  UNROLLED for (int i = 0; i < kOwn; ++i) UNROLLED for (int j = 0; j < kOwn; ++j) {
    const int64_t key = tile + own_column() + kSide * j;
    if (rows.slot[i] >= 0 && key < call.keys)
      put(w, rows.index[i] * call.keys + key, seen ? scores.of[i][j] : kHidden);
  }
}

KERNEL(attention_weights_of_scores)(Out w, int64_t count, AttentionCall call) {
  const In scores = {w.data, w.dtype};
  const int64_t keys = call.keys;
  for (int64_t row = first_row(); row < count; row += row_stride()) {
    const int64_t begin = row * keys;
    float most = kHidden;
    for (int64_t j = lane(); j < keys; j += kWarp) most = larger(get(scores, begin + j), most);
    most = largest_over<kWarp>(most);
    const float sink = sink_of(call, row / call.queries % call.heads);
    most = larger(most, sink);
    const float shift = most == kHidden ? 0 : most;
    float sum = 0;
    if (lane() < kPartialSums)
      for (int64_t j = lane(); j < keys; j += kPartialSums)
        sum += exp2(get(scores, begin + j) - shift);
    sum = sum_over<kPartialSums>(sum);
    if (call.sinks.data != nullptr) sum += exp2(sink - most);
    const float of_others = shuffle_xor(sum, kPartialSums);
    if (lane() >= kPartialSums) sum = of_others;
    const float factor = sum == 0 ? 0 : 1 / sum;
    for (int64_t j = lane(); j < keys; j += kWarp)
      put(w, begin + j, exp2(get(scores, begin + j) - shift) * factor);
  }
}

KERNEL(attention_sink_terms)
(Out terms, In dy, In y, In lse, int64_t rows, AttentionCall call) {
  for (int64_t row = first_row(); row < rows; row += row_stride()) {
    const int64_t head = row % call.heads, token = row / call.heads;
    float product = 0;
    if (lane() < kPartialSums)
      for (int64_t d = row * call.value_width + lane(); d < (row + 1) * call.value_width;
           d += kPartialSums)
        product = fmaf(get(dy, d), get(y, d), product);
    product = sum_over<kPartialSums>(product);
    const int64_t index =
        (token / call.queries * call.heads + head) * call.queries + token % call.queries;
    const float share = exp2(sink_of(call, head) - get(lse, index) * kLog2e);
    if (lane() == 0) put(terms, row, -share * product);
  }
}

}  // namespace fovea::cuda
