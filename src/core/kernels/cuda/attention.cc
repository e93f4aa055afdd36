// The entries of attention.

#include <numbers>

#include "base/error.h"
#include "kernels/cuda/start.h"

namespace fovea::cuda {
namespace {

SeenKeys seen_keys(const Mask& mask, int64_t batch, int64_t query, int64_t keys) {
  Interval intervals[Mask::kMostIntervals];
  const int count = mask.intervals(batch, query, keys, intervals);
  SeenKeys seen;
  for (int i = 0; i < count; ++i) {
    seen.begin[i] = static_cast<int32_t>(intervals[i].begin);
    seen.end[i] = static_cast<int32_t>(intervals[i].end);
  }
  return seen;
}

// Of all queries; of one batch row if the others have the same.
std::vector<SeenKeys> seen_keys(const AttentionShape& shape) {
  const bool differ = !shape.mask.valid.empty() || shape.mask.documents != nullptr;
  std::vector<SeenKeys> seen;
  for (int64_t batch = 0; batch < (differ ? shape.batch : 1); ++batch)
    for (int64_t query = 0; query < shape.queries; ++query)
      seen.push_back(seen_keys(shape.mask, batch, query, shape.keys));
  return seen;
}

// The call without `seen`.
AttentionCall call_of(const AttentionShape& shape) {
  return {.batch = shape.batch,
          .queries = shape.queries,
          .keys = shape.keys,
          .capacity = shape.capacity,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .width = shape.width,
          .value_width = shape.values(),
          .factor = static_cast<float>(shape.scale * std::numbers::log2e),
          .scale = shape.scale,
          .softcap = shape.softcap,
          .dropout = shape.dropout,
          .first_dropped_row = shape.first_dropped_row(),
          .bias = shape.bias,
          .bias_stride = shape.bias_stride,
          .bias_origin = shape.bias_origin,
          .bias_tables = shape.bias_tables,
          .sinks = shape.sinks};
}

Launch attention_blocks(const AttentionShape& shape, int64_t tiles, int64_t columns) {
  return {.blocks_x = static_cast<int>(tiles * tiles_of(columns)),
          .blocks_y = static_cast<int>(shape.batch * shape.kv_heads),
          .shared_bytes = kAttentionBytes};
}

// Calls use(call) with a call whose `seen` is on the device.
template <class Use>
void with_call(const AttentionShape& shape, const Use& use) {
  const std::vector<SeenKeys> seen = seen_keys(shape);
  const OnDevice on_device{std::span<const SeenKeys>(seen)};
  AttentionCall call = call_of(shape);
  call.seen = on_device.data();
  call.seen_stride = std::ssize(seen) > shape.queries ? shape.queries : 0;
  use(call);
}

// The width of tiles on tensor cores for this attention of bf16; 0 if it is computed without them.
int mma_width(const AttentionShape& shape, std::initializer_list<In> arrays) {
  const int64_t width = std::max(shape.width, shape.values());
  const bool halves =
      std::ranges::all_of(arrays, [](const In& x) { return x.dtype == DType::bf16; });
  if (!halves || shape.softcap > 0 || shape.bias.data != nullptr || width > 128) return 0;
  return width <= 64 ? 64 : 128;
}
bool heads_are_wide(const AttentionShape& shape, std::initializer_list<In> arrays) {
  return std::ranges::all_of(
      arrays, [&](const In& x) { return is_wide(x, shape.width) && is_wide(x, shape.values()); });
}
Launch mma_blocks(const AttentionShape& shape, int64_t tiles, int width, int of_shared,
                  int pieces) {
  return {.blocks_x = static_cast<int>(tiles * pieces),
          .blocks_y = static_cast<int>(shape.batch * shape.kv_heads),
          .shared_bytes = bytes_of_mma_attention(width, of_shared)};
}

}  // namespace

void attention(Out y, Out lse, In q, In k, In v, const AttentionShape& shape) {
  const int64_t rows = shape.heads / shape.kv_heads * shape.queries;
  if (shape.batch == 0 || rows == 0 || shape.values() == 0) return;
  with_call(shape, [&](const AttentionCall& call) {
    if (const int width = mma_width(shape, {q, k, v}); width > 0)
      return launch(width == 64 ? kernel::attention_mma_64 : kernel::attention_mma_128,
                    mma_blocks(shape, tiles_of(rows), width, kForwardTiles, 1), y, lse, q, k, v,
                    call, heads_are_wide(shape, {q, k, v}));
    launch(kernel::attention, attention_blocks(shape, tiles_of(rows), shape.values()), y, lse, q, k,
           v, call);
  });
}

namespace {

void mma_backward(Out dq, Out dk, Out dv, const AttentionInputs& in, const AttentionCall& call,
                  const AttentionShape& shape, int width) {
  const int64_t queries = shape.batch * shape.queries * shape.heads, pieces = width / kTile;
  const int64_t rows = shape.heads / shape.kv_heads * shape.queries;
  const bool wide = heads_are_wide(shape, {in.dy, in.q, in.k, in.v});
  const OnDevice<float> deltas(static_cast<size_t>(std::max<int64_t>(1, queries)));
  if (queries > 0)
    launch(kernel::attention_deltas, over_rows(queries), deltas.data(), in.dy, in.y, queries, call);
  const auto blocks = [&](int64_t tiles) {
    return mma_blocks(shape, tiles, width, kBackwardTiles, static_cast<int>(pieces));
  };
  if (dk.data != nullptr || dv.data != nullptr)
    launch(width == 64 ? kernel::attention_mma_backward_keys_64
                       : kernel::attention_mma_backward_keys_128,
           blocks(tiles_of(shape.capacity)), dk, dv, in, deltas.data(), call, wide);
  if (dq.data != nullptr && rows > 0)
    launch(width == 64 ? kernel::attention_mma_backward_queries_64
                       : kernel::attention_mma_backward_queries_128,
           blocks(tiles_of(rows)), dq, in, deltas.data(), call, wide);
}

// The gradient of the position bias: a batch row at a time, since all scores are stored.
void bias_backward(Out dbias, const AttentionInputs& in, const AttentionCall& call,
                   const AttentionShape& shape) {
  const int64_t size = shape.bias_tables * shape.heads * shape.bias_stride;
  const int64_t blocks =
      tiles_of(shape.heads / shape.kv_heads * shape.queries) * tiles_of(shape.keys);
  if (size == 0) return;
  const OnDevice<float> dscores(
      static_cast<size_t>(std::max<int64_t>(1, shape.heads * shape.queries * shape.keys)));
  const OnDevice<double> sums(static_cast<size_t>(size));
  for (int64_t batch = 0; batch < shape.batch; ++batch) {
    if (blocks > 0)
      launch(kernel::attention_backward_scores,
             {.blocks_x = static_cast<int>(blocks),
              .blocks_y = static_cast<int>(shape.kv_heads),
              .shared_bytes = kAttentionBytes},
             dscores.data(), in, call, batch);
    launch(kernel::sum_distances, over(shape.heads * shape.bias_stride), sums.data(),
           dscores.data(), call, batch);
  }
  launch(kernel::round_sums, over(size), dbias, sums.data(), size);
}

}  // namespace

void attention_backward(Out dq, Out dk, Out dv, Out dbias, In dy, In q, In k, In v, In y, In lse,
                        const AttentionShape& shape) {
  const int64_t rows = shape.heads / shape.kv_heads * shape.queries;
  if (shape.batch == 0) return;
  const AttentionInputs inputs = {dy, q, k, v, y, lse};
  with_call(shape, [&](const AttentionCall& call) {
    if (dbias.data != nullptr) bias_backward(dbias, inputs, call, shape);
    if (const int width = mma_width(shape, {dy, q, k, v}); width > 0)
      return mma_backward(dq, dk, dv, inputs, call, shape, width);
    if (dk.data != nullptr || dv.data != nullptr)
      launch(
          kernel::attention_backward_keys,
          attention_blocks(shape, tiles_of(shape.capacity), std::max(shape.width, shape.values())),
          dk, dv, inputs, call);
    if (dq.data != nullptr && rows > 0)
      launch(kernel::attention_backward_queries,
             attention_blocks(shape, tiles_of(rows), shape.width), dq, inputs, call);
  });
}

void attention_weights(Out w, In q, In k, const AttentionShape& shape) {
  const int64_t rows = shape.heads / shape.kv_heads * shape.queries;
  if (shape.batch == 0 || rows == 0 || shape.keys == 0) return;
  with_call(shape, [&](const AttentionCall& call) {
    launch(kernel::attention_scores,
           attention_blocks(shape, tiles_of(rows) * tiles_of(shape.keys), kTile), w, q, k, call);
    const int64_t count = shape.batch * shape.heads * shape.queries;
    launch(kernel::attention_weights_of_scores, over_rows(count), w, count, call);
  });
}

void attention_sink_terms(Out terms, In dy, In y, In lse, const AttentionShape& shape) {
  const int64_t rows = shape.batch * shape.queries * shape.heads;
  if (rows > 0)
    launch(kernel::attention_sink_terms, over_rows(rows), terms, dy, y, lse, rows, call_of(shape));
}

void attention_paged(Out y, In q, const PagedAttention& paged,
                     const std::vector<PagedText>& texts) {
  const PageLayout keys = key_pages(paged), values = value_pages(paged);
  PagedCall call = {.call = call_of(shape_of(paged, {})),
                    .keys = keys,
                    .values = values,
                    .key_head_bytes = keys.head_bytes(),
                    .key_scales_at = keys.scales_at(),
                    .value_head_bytes = values.head_bytes(),
                    .value_scales_at = values.scales_at(),
                    .values_in_keys = paged.values_in_keys};
  std::vector<PagedSpan> spans;
  std::vector<PagedBlock> blocks;
  std::vector<SeenKeys> seen;
  std::vector<const void*> of_keys, of_values;
  for (const PagedText& text : texts) {
    const AttentionShape shape = shape_of(paged, text);
    const int64_t rows = shape.heads / shape.kv_heads * shape.queries;
    for (int64_t head = 0; head < shape.kv_heads; ++head)
      for (int64_t row = 0; row < rows; row += kTile)
        for (int64_t column = 0; column < shape.values(); column += kTile)
          blocks.push_back({static_cast<int32_t>(spans.size()), static_cast<int32_t>(head),
                            static_cast<int32_t>(row), static_cast<int32_t>(column)});
    spans.push_back({text.row, text.queries, text.keys, shape.bias_origin, std::ssize(of_keys),
                     std::ssize(seen)});
    for (int64_t page = 0; page < tiles_of(text.keys); ++page) {
      of_keys.push_back(text.key_pages[page]);
      if (!paged.values_in_keys) of_values.push_back(text.value_pages[page]);
    }
    for (int64_t query = 0; query < text.queries; ++query)
      seen.push_back(seen_keys(text.mask, 0, query, text.keys));
  }
  if (blocks.empty()) return;
  const OnDevice its_spans{std::span<const PagedSpan>(spans)};
  const OnDevice its_blocks{std::span<const PagedBlock>(blocks)};
  const OnDevice its_seen{std::span<const SeenKeys>(seen)};
  const OnDevice its_keys{std::span<const void* const>(of_keys)},
      its_values{std::span<const void* const>(of_values)};
  call.call.seen = its_seen.data();
  call.key_pages = its_keys.data();
  call.value_pages = its_values.data();
  launch(kernel::attention_paged,
         {.blocks_x = static_cast<int>(blocks.size()), .shared_bytes = kAttentionBytes}, y, q, call,
         its_spans.data(), its_blocks.data());
}

void put_in_pages(std::span<const PageRows> rows) {
  std::vector<PagePut> puts;
  int64_t heads = 0;
  for (const PageRows& each : rows) {
    if (each.count == 0) continue;
    heads = std::max(heads, each.layout->heads);
    puts.push_back({.layout = *each.layout,
                    .head_bytes = each.layout->head_bytes(),
                    .scales_at = each.layout->scales_at(),
                    .part = each.part,
                    .page = each.page.data,
                    .token = each.token,
                    .count = each.count,
                    .x = each.x});
  }
  if (puts.empty() || heads == 0) return;
  const OnDevice on_device{std::span<const PagePut>(puts)};
  Launch how = over_rows(heads);
  how.blocks_y = static_cast<int>(puts.size());
  launch(kernel::put_in_pages, how, on_device.data());
}

}  // namespace fovea::cuda
