// The forward pass of attention; see cpu/attention/forward.cc. A block has the state of kTile rows
// in registers: 64 columns of y, the pivots and the sums of weights.

#include "base/log.h"
#include "kernels/cuda/attention.cuh"

namespace fovea::cuda {
namespace {

// The state of a thread's rows.
struct RowStates {
  Sums y;                // relative to 2^pivot
  float sum[kOwn] = {};  // of the weights of the keys own_column() + kSide j
  float pivot[kOwn];

  DEVICE RowStates(const AttentionCall& call, const OwnRows& rows) {
    UNROLLED for (int i = 0; i < kOwn; ++i) {
      pivot[i] = sink_of(call, rows.head[i]);
      if (pivot[i] != kHidden && own_column() == 0) sum[i] = 1;
    }
  }

  // Raises a row's pivot if a score exceeds it by more than kSlack; see raise_pivot() of the CPU.
  DEVICE void raise_pivot(int i, const float (&scores)[kOwn]) {
    constexpr float kSlack = 8;
    float most = kHidden;
    UNROLLED for (const float score : scores) most = larger(most, score);
    most = largest_over<kSide>(most);
    if (!(most > pivot[i] + kSlack)) return;
    const float rescale = exp2(pivot[i] - most);
    pivot[i] = most;
    sum[i] *= rescale;
    UNROLLED for (float& each : y.of[i]) each *= rescale;
  }
};

// y and lse of the block's rows, for the columns of values from `column` on.
template <class Keys, class Values>
DEVICE void attend(Out y, Out lse, const QueryOperand& q, const OwnRows& rows, const Keys& keys,
                   const Values& values, const AttentionCall& call, int64_t batch, int64_t column) {
  SHARED(AttentionTiles, shared);
  RowStates states(call, rows);
  for (int64_t tile = 0; tile < call.keys; tile += kTile) {
    if (!rows.see_tile(tile)) continue;
    Sums scores;
    multiply_rows(scores, shared.tiles, q, rows, keys, tile, call.width);
    UNROLLED for (auto& row : scores.of) UNROLLED for (int j = 0; j < kOwn; ++j) row[j] *=
        keys.scale(tile + own_column() + kSide * j);
    bend_scores(scores, rows, call, batch, tile, nullptr);
    UNROLLED for (int i = 0; i < kOwn; ++i) {
      states.raise_pivot(i, scores.of[i]);
      // If all keys were masked so far, the weights are 0.
      const float shift = states.pivot[i] == kHidden ? 0 : states.pivot[i];
      UNROLLED for (int j = 0; j < kOwn; ++j) {
        const int key = own_column() + kSide * j;
        const float weight = exp2(scores.of[i][j] - shift);
        states.sum[i] += weight;
        float factor = values.scale(tile + key);
        if (call.dropout.probability > 0) factor = dropout_factor(call, rows, i, tile, j);
        shared.left[key][own_row() + kSide * i] = weight * factor;
      }
    }
    barrier();
    multiply_left(states.y, shared,
                  [&](int key, int d) { return values.at(tile + key, column + d); });
  }
  UNROLLED for (int i = 0; i < kOwn; ++i) {
    const float total = sum_over<kSide>(states.sum[i]), inverse = total == 0 ? 0 : 1 / total;
    if (rows.slot[i] < 0) continue;
    UNROLLED for (int j = 0; j < kOwn; ++j) {
      const int64_t d = column + own_column() + kSide * j;
      if (d < call.value_width)
        put(y, rows.slot[i] * call.value_width + d, states.y.of[i][j] * inverse);
    }
    if (lse.data == nullptr || column > 0 || own_column() > 0) continue;
    put(lse, rows.index[i],
        total == 0 ? kHidden : states.pivot[i] * kLn2 + math::parts::natural_log(total));
  }
}

// The keys, or values, of one key-value head in the pages of a text.
struct RowsOfPages {
  const void* const* pages;
  PagePart part;
  PageLayout layout;
  int64_t head_begin, scales_at;  // in bytes
  int64_t count, width;

  DEVICE const char* head(int64_t key) const {
    return static_cast<const char*>(pages[key / kTile]) + head_begin;
  }
  DEVICE float at(int64_t key, int64_t d) const {
    if (key >= count || d >= width || pages[key / kTile] == nullptr) return 0;
    const int64_t token = key % kTile;
    const int64_t i = part == PagePart::keys ? layout.key_at(token, d) : layout.value_at(token, d);
    if (layout.dtype == DType::i8) return static_cast<float>(static_cast<int8_t>(head(key)[i]));
    return get(In(head(key), layout.dtype), i);
  }
  DEVICE float scale(int64_t key) const {
    if (layout.dtype != DType::i8 || key >= count || pages[key / kTile] == nullptr) return 1;
    return reinterpret_cast<const float*>(head(key) + scales_at)[key % kTile];
  }
};

}  // namespace

KERNEL(attention)(Out y, Out lse, In q, In k, In v, AttentionCall call) {
  const int64_t batch = block_y() / call.kv_heads, kv_head = block_y() % call.kv_heads;
  const int64_t pieces = (call.value_width + kTile - 1) / kTile;
  const OwnRows rows(call, batch, kv_head, block_x() / pieces * kTile);
  attend(y, lse, {q, call.width, call.factor}, rows,
         RowsOfHead(k, call, batch, kv_head, call.width),
         RowsOfHead(v, call, batch, kv_head, call.value_width), call, batch,
         block_x() % pieces * kTile);
}

KERNEL(attention_paged)
(Out y, In q, PagedCall paged, const PagedSpan* spans, const PagedBlock* blocks) {
  const PagedBlock block = blocks[block_x()];
  const PagedSpan span = spans[block.span];
  const int64_t kv_head = block.kv_head;
  AttentionCall call = paged.call;
  call.queries = span.queries;
  call.keys = span.keys;
  call.bias_origin = span.bias_origin;
  call.seen += span.seen;
  OwnRows rows(call, 0, kv_head, block.first_row);
  UNROLLED for (int64_t& slot : rows.slot) slot += slot < 0 ? 0 : span.row * call.heads;
  const RowsOfPages keys = {
      paged.key_pages + span.pages, PagePart::keys, paged.keys, kv_head * paged.key_head_bytes,
      paged.key_scales_at,          call.keys,      call.width};
  RowsOfPages values = {paged.value_pages + span.pages,
                        PagePart::values,
                        paged.values,
                        kv_head * paged.value_head_bytes,
                        paged.value_scales_at,
                        call.keys,
                        call.value_width};
  if (paged.values_in_keys) {
    values = keys;
    values.width = call.value_width;
  }
  attend(y, {}, {q, call.width, call.factor}, rows, keys, values, call, 0, block.column);
}

}  // namespace fovea::cuda
