// The backward pass of attention; see cpu/attention/backward.cc, which also has the formulas. dk
// and dv are sums over all rows of queries, dq is one over all keys, so that there are two kernels,
// which both compute the weights again.

#include "kernels/cuda/attention.cuh"

namespace fovea::cuda {
namespace {

struct Gradients {
  Sums weights;  // with dropout: those that are multiplied with values
  Sums dscores;
};

// Of the rows and the keys of a tile. bent: dscores are those before the soft cap.
DEVICE Gradients differentiate(AttentionTiles& shared, const AttentionInputs& in,
                               const OwnRows& rows, const AttentionCall& call, int64_t batch,
                               int64_t kv_head, int64_t tile, bool bent = true) {
  const RowsOfHead keys(in.k, call, batch, kv_head, call.width);
  const RowsOfHead values(in.v, call, batch, kv_head, call.value_width);
  const QueryOperand q = {in.q, call.width, call.factor}, dy = {in.dy, call.value_width, 1};
  Gradients found;
  Sums slopes, &scores = found.weights, &dweights = found.dscores;
  multiply_rows(scores, shared.tiles, q, rows, keys, tile, call.width);
  multiply_rows(dweights, shared.tiles, dy, rows, values, tile, call.value_width);
  bend_scores(scores, rows, call, batch, tile, &slopes);
  UNROLLED for (int i = 0; i < kOwn; ++i) {
    const int64_t slot = rows.slot[i];
    float delta = 0, log_sum = INFINITY;  // weights of 0 if no key is seen
    if (slot >= 0) {
      for (int64_t d = own_column(); d < call.value_width; d += kSide)
        delta = multiply_add(get(in.dy, slot * call.value_width + d),
                             get(in.y, slot * call.value_width + d), delta);
      const float log = get(in.lse, rows.index[i]);
      if (log != kHidden) log_sum = log * kLog2e;
    }
    delta = sum_over<kSide>(delta);
    UNROLLED for (int j = 0; j < kOwn; ++j) {
      const float weight = exp2(scores.of[i][j] - log_sum);
      float dropped = 1;
      if (call.dropout.probability > 0 && slot >= 0)
        dropped = dropout_factor(call, rows, i, tile, j);
      found.dscores.of[i][j] = weight * (dweights.of[i][j] * dropped - delta);
      found.weights.of[i][j] = weight * dropped;
      if (bent && call.softcap > 0) found.dscores.of[i][j] *= slopes.of[i][j];
    }
  }
  return found;
}

// shared.left [row][key], or [key][row], = x; a row or a key that does not exist has 0.
DEVICE void store_left(AttentionTiles& shared, const Sums& x, bool rows_first) {
  UNROLLED for (int i = 0; i < kOwn; ++i) UNROLLED for (int j = 0; j < kOwn; ++j) {
    const int row = own_row() + kSide * i, key = own_column() + kSide * j;
    (rows_first ? shared.left[row][key] : shared.left[key][row]) = x.of[i][j];
  }
  barrier();
}

// Stores the columns from `column` of the keys, or values, of a tile.
DEVICE void store_keys(Out dk, const Sums& sums, const AttentionCall& call, int64_t batch,
                       int64_t kv_head, int64_t tile, int64_t width, int64_t column, float factor) {
  if (dk.data == nullptr) return;
  UNROLLED for (int i = 0; i < kOwn; ++i) UNROLLED for (int j = 0; j < kOwn; ++j) {
    const int64_t key = tile + own_row() + kSide * i, d = column + own_column() + kSide * j;
    if (key < call.capacity && d < width)  // 0 after the last key
      put(dk, ((batch * call.capacity + key) * call.kv_heads + kv_head) * width + d,
          sums.of[i][j] * factor);
  }
}

}  // namespace

KERNEL(attention_backward_keys)
(Out dk, Out dv, AttentionInputs in, AttentionCall call) {
  SHARED(AttentionTiles, shared);
  const int64_t batch = block_y() / call.kv_heads, kv_head = block_y() % call.kv_heads;
  const int64_t most = call.width > call.value_width ? call.width : call.value_width;
  const int64_t pieces = (most + kTile - 1) / kTile;
  const int64_t tile = block_x() / pieces * kTile, column = block_x() % pieces * kTile;
  const int64_t rows_of_head = call.heads / call.kv_heads * call.queries;
  const QueryOperand q = {in.q, call.width, call.factor}, dy = {in.dy, call.value_width, 1};
  Sums of_keys, of_values;
  for (int64_t first = 0; first < rows_of_head; first += kTile) {
    const OwnRows rows(call, batch, kv_head, first);
    if (!rows.see_tile(tile)) continue;
    const Gradients found = differentiate(shared, in, rows, call, batch, kv_head, tile);
    const auto row_of = [&](const QueryOperand& x) {
      return [=, &call](int row, int d) {
        return x.at(QueryRow(call, batch, kv_head, first + row).slot, column + d);
      };
    };
    store_left(shared, found.weights, true);
    multiply_left(of_values, shared, row_of(dy));
    store_left(shared, found.dscores, true);
    multiply_left(of_keys, shared, row_of(q));
  }
  store_keys(dk, of_keys, call, batch, kv_head, tile, call.width, column, kLn2);
  store_keys(dv, of_values, call, batch, kv_head, tile, call.value_width, column, 1);
}

KERNEL(attention_backward_queries)(Out dq, AttentionInputs in, AttentionCall call) {
  SHARED(AttentionTiles, shared);
  const int64_t batch = block_y() / call.kv_heads, kv_head = block_y() % call.kv_heads;
  const int64_t pieces = (call.width + kTile - 1) / kTile;
  const int64_t column = block_x() % pieces * kTile;
  const OwnRows rows(call, batch, kv_head, block_x() / pieces * kTile);
  const RowsOfHead keys(in.k, call, batch, kv_head, call.width);
  Sums of_queries;
  for (int64_t tile = 0; tile < call.keys; tile += kTile) {
    if (!rows.see_tile(tile)) continue;
    const Gradients found = differentiate(shared, in, rows, call, batch, kv_head, tile);
    store_left(shared, found.dscores, false);
    multiply_left(of_queries, shared,
                  [&](int key, int d) { return keys.at(tile + key, column + d); });
  }
  UNROLLED for (int i = 0; i < kOwn; ++i) UNROLLED for (int j = 0; j < kOwn; ++j) {
    const int64_t d = column + own_column() + kSide * j;
    if (rows.slot[i] >= 0 && d < call.width)
      put(dq, rows.slot[i] * call.width + d, of_queries.of[i][j] * call.scale);
  }
}

KERNEL(attention_backward_scores)
(float* dscores, AttentionInputs in, AttentionCall call, int64_t batch) {
  SHARED(AttentionTiles, shared);
  const int64_t kv_head = block_y(), tiles = (call.keys + kTile - 1) / kTile;
  const OwnRows rows(call, batch, kv_head, block_x() / tiles * kTile);
  const int64_t tile = block_x() % tiles * kTile;
  Gradients found;
  if (rows.see_tile(tile))
    found = differentiate(shared, in, rows, call, batch, kv_head, tile, false);
  UNROLLED for (int i = 0; i < kOwn; ++i) UNROLLED for (int j = 0; j < kOwn; ++j) {
    const int64_t key = tile + own_column() + kSide * j;
    const int64_t row = rows.index[i] - batch * call.heads * call.queries;
    if (rows.slot[i] >= 0 && key < call.keys)
      dscores[row * call.keys + key] = rows.sees(i, key) ? found.dscores.of[i][j] : 0;
  }
}

// The order of the CPU: by queries, for each batch row.
KERNEL(sum_distances)
(double* sums, const float* dscores, AttentionCall call, int64_t batch) {
  const int64_t size = call.heads * call.bias_stride, rows = call.batch / call.bias_tables;
  double* const own = sums + batch / rows * size;
  for (int64_t i = first_element(); i < size; i += element_stride()) {
    const int64_t head = i / call.bias_stride;
    double sum = batch % rows == 0 ? 0 : own[i];
    for (int64_t query = 0; query < call.queries; ++query) {
      const int64_t key = i % call.bias_stride - call.bias_origin + query;
      if (key >= 0 && key < call.keys)
        sum += dscores[(head * call.queries + query) * call.keys + key];
    }
    own[i] = sum;
  }
}

KERNEL(round_sums)(Out y, const double* sums, int64_t size) {
  for (int64_t i = first_element(); i < size; i += element_stride())
    put(y, i, static_cast<float>(sums[i]));
}

}  // namespace fovea::cuda
