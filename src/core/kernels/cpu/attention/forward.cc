// Tiled attention: FlashAttention (Dao et al. 2022; Dao 2023) with the online softmax of Milakov
// and Gimelshein (2018). A thread stores only the weights of one strip of queries and one tile of
// keys at a time.
//
// The bits of a query's result depend only on its own vector and on the keys that it sees: tiles
// begin at multiples of kTile and are processed in ascending order, every sum is one chain or
// kPanel chains over ascending keys, and a masked key adds an exact 0.
//
// With operands or pages of bf16, queries and weights are rounded to bf16, see kernels.h.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/forward.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include "kernels/cpu/attention/strip-inl.h"
// clang-format on

#include <numbers>
#include <vector>

#include "base/float_mode.h"
#include "base/math.h"
#include "kernels/cpu/cpu.h"
#include "kernels/isa.h"
#include "kernels/layout/kv_page.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class Arithmetic>
void start(const Block& block, In q) {
  const AttentionShape& shape = block.queries.shape;
  const int64_t rows = block.queries.rows();
  const float factor = Arithmetic::kRounds ? 1 : block.factor;
  for (int64_t row = 0; row < rows; ++row) {
    float* query = Arithmetic::kRounds ? block.k : block.q + row * block.wide;
    load_row(query, q, block.queries.offset(row, shape.width), shape.width, block.wide, factor);
    if constexpr (Arithmetic::kRounds) {
      auto* rounded = block.query<Arithmetic>(row);
      for (int64_t d = 0; d < block.wide; d += 2 * kLanes)
        Arithmetic::round(hn::Load(Floats(), query + d), hn::Load(Floats(), query + d + kLanes),
                          rounded + d / Arithmetic::kPair, all(0));
    }
  }
  std::fill(block.y, block.y + rows * block.value_padded, 0.0f);
  std::fill(block.sums, block.sums + rows * kPanel, 0.0f);
  std::fill(block.pivots, block.pivots + rows, kHidden);
  std::fill(block.factors, block.factors + kTile, 1.0f);
  if (shape.sinks.data == nullptr) return;
  for (int64_t row = 0; row < rows; ++row) {
    const Sink sink(shape, block.queries.head(row));
    block.pivots[row] = Arithmetic::kRounds ? std::nearbyint(sink.score) : sink.score;
    block.sums[row * kPanel] = sink.weight(block.pivots[row]);
  }
}

template <class Arithmetic>
void finish(const Block& block, Out y, Out lse) {
  const int64_t width = block.queries.shape.values();
  for (int64_t row = 0; row < block.queries.rows(); ++row) {
    const float sum = sum_of_lanes(block.sums + row * kPanel);
    const float inverse = sum == 0 ? 0.0f : 1.0f / sum;
    float* result = block.y + row * block.value_padded;
    // Products that underflow to -0 may become +0 if masked keys follow.
    if constexpr (Arithmetic::kRounds)
      for (int64_t d = 0; d < width; ++d) result[d] += 0.0f;
    store_row(y, block.queries.offset(row, width), result, width, inverse);
    if (lse.data == nullptr) continue;
    const float log =
        sum == 0 ? kHidden : block.pivots[row] * std::numbers::ln2_v<float> + math::log(sum);
    store_row(lse, block.queries.index(row), &log, 1, 1.0f);
  }
}

Block make_block(const QueryRows& queries, Scratch& scratch) {
  const int64_t rows = queries.rows(), padded = cpu::padded(queries.shape.width);
  const int64_t value_padded = cpu::padded(queries.shape.values());
  const int64_t wide = round_up(padded, 2 * kPanel);
  return {queries,
          padded,
          value_padded,
          wide,
          score_factor(queries.shape),
          scratch.take(rows * wide),
          scratch.take(rows * value_padded),
          scratch.take(rows),
          scratch.take(rows * kPanel),
          scratch.take(kTile),
          scratch.take(kStrip * kTile),
          scratch.take(kStrip * kTile),
          scratch.take(kTile * padded),
          scratch.take(kTile * std::max(padded, value_padded))};
}

int64_t block_floats(const QueryRows& queries) {
  const int64_t rows = queries.rows(), padded = cpu::padded(queries.shape.width);
  const int64_t value_padded = cpu::padded(queries.shape.values());
  return rows * (round_up(padded, 2 * kPanel) + value_padded + kPanel) + Scratch::size_of(rows) +
         kTile * (1 + 2 * kStrip + padded + std::max(padded, value_padded));
}

// Tiles of contiguous keys and values, [B, capacity, G, ...].
template <class Numbers>
struct RowTiles {
  using Arithmetic = Numbers;
  const Block& block;
  KeyRows k, v;

  // Returns the first `columns` columns of the tile that begins at key `tile`.
  Tile<float> at(int64_t tile, int64_t columns) const {
    const QueryRows& queries = block.queries;
    const int64_t padded = block.padded, count = std::min(kTile, queries.shape.keys - tile);
    const TileRows keys = rows_of_tile(block.rows, k, queries, tile);
    transpose_tile(keys, columns, padded, block.rows, block.k);
    TileRows values{block.rows, block.value_padded, count};
    if (!Arithmetic::kRounds && queries.rows() < kStrip) {
      // Copying would cost more than reading with a stride. Arithmetic that rounds reads an even
      // number of values, the last of which may be padding.
      values = rows_of_tile(block.rows, v, queries, tile);
    } else {
      load_tile(block.rows, v, queries, tile, columns);
    }
    return {block.k, kTile, kPanel, values.data, values.stride, values.count};
  }
  // Prefetches the given keys and their values.
  void prefetch(Interval keys) const {
    prefetch_keys(k, block.queries, keys);
    prefetch_keys(v, block.queries, keys);
  }
};

// The same in bf16, as words.
template <class Numbers>
struct RowWordTiles {
  using Arithmetic = Numbers;
  const Block& block;
  KeyRows k, v;

  Tile<uint32_t> at(int64_t tile, int64_t) const {
    auto *keys = reinterpret_cast<uint32_t*>(block.k),
         *values = reinterpret_cast<uint32_t*>(block.rows);
    HalfRows(k, block.queries, tile).transpose(keys);
    const HalfRows rows(v, block.queries, tile);
    rows.pair(values);
    return {keys, kTile, kPanel, values, block.value_padded, rows.count};
  }
  void prefetch(Interval keys) const {
    prefetch_keys(k, block.queries, keys);
    prefetch_keys(v, block.queries, keys);
  }
};
template <class Arithmetic>
using TilesOfRows =
    std::conditional_t<Arithmetic::kPair == 2, RowWordTiles<Arithmetic>, RowTiles<Arithmetic>>;

// Tiles of the keys and values of one sequence, read directly from its pages.
template <class Numbers>
struct PageTiles {
  using Arithmetic = Numbers;
  using Stored = typename Arithmetic::Right;
  const Block& block;
  const PagedText& text;
  const PageLayout &keys, &values;

  Tile<Stored> at(int64_t tile, int64_t) const {
    const int64_t head = block.queries.kv_head;
    const char* k =
        static_cast<const char*>(text.key_pages[tile / kTile]) + head * keys.head_bytes();
    const char* v =
        static_cast<const char*>(text.value_pages[tile / kTile]) + head * values.head_bytes();
    Tile<Stored> here{
        reinterpret_cast<const Stored*>(k), kPanel,       kPanel * keys.key_width() / keys.pair(),
        reinterpret_cast<const Stored*>(v), values.row(), std::min(kTile, text.keys - tile)};
    if (std::is_same_v<Stored, int8_t>) {
      here.key_scales = reinterpret_cast<const float*>(k + keys.scales_at());
      here.value_scales = reinterpret_cast<const float*>(v + values.scales_at());
    }
    return here;
  }
  void prefetch(Interval) const {}  // a head's part of a page is contiguous
};

// Converts `rows` rows of `width` numbers, a multiple of kPanel, to floats. A word holds the
// numbers of two rows.
void widen_rows(const int8_t* from, int64_t rows, int64_t width, float* to) {
  for (int64_t i = 0; i < rows * width; i += kLanes)
    hn::Store(load_floats(from + i), Floats(), to + i);
}
void widen_rows(const uint32_t* from, int64_t rows, int64_t width, float* to) {
  for (int64_t row = 0; row < rows; row += 2, to += 2 * width) {
    for (int64_t i = 0; i < width; i += kLanes, from += kLanes) {
      const WordVector pairs = hn::LoadU(Words(), from);
      hn::Store(upper_of(pairs), Floats(), to + i);
      hn::Store(lower_of(pairs), Floats(), to + width + i);
    }
  }
}

// Tiles of pages of elements (or words) Stored, converted to floats once for many queries.
template <class Stored, class Floats>
struct WidenedTiles {
  using Arithmetic = Floats;
  const Block& block;
  const PagedText& text;
  const PageLayout &keys, &values;

  Tile<float> at(int64_t tile, int64_t columns) const {
    const auto page = PageTiles<ExactFloats<Stored>>{block, text, keys, values}.at(tile, columns);
    const int64_t key_panel = kPanel * keys.key_width();
    widen_rows(page.keys, columns / kPanel * keys.key_width(), kPanel, block.k);
    widen_rows(page.values, round_up(page.count, values.pair()), values.row(), block.rows);
    return {block.k,           kPanel,     key_panel,       block.rows,
            page.value_stride, page.count, page.key_scales, page.value_scales};
  }
  void prefetch(Interval) const {}
};

// Tiles of pages of keys whose first elements are the values: these are transposed once for all
// queries and heads.
template <class Stored, class Numbers>
struct SharedTiles {
  using Arithmetic = Numbers;
  using Right = typename Arithmetic::Right;  // float, or words of bf16
  const Block& block;
  const PagedText& text;
  const PageLayout &keys, &values;

  Tile<Right> at(int64_t tile, int64_t columns) const {
    const char* page = static_cast<const char*>(text.key_pages[tile / kTile]) +
                       block.queries.kv_head * keys.head_bytes();
    const auto* stored = reinterpret_cast<const Stored*>(page);
    const float* panels = block.k;
    if constexpr (std::is_same_v<Stored, float>)
      panels = stored;
    else
      widen_rows(stored, columns / kPanel * keys.key_width(), kPanel, block.k);
    const int64_t panel = kPanel * keys.key_width(), stride = block.value_padded;
    for (int64_t key = 0; key < columns; key += kPanel)
      transpose_panel(panels + key / kPanel * panel, keys.width, stride, block.rows + key * stride);
    const int64_t count = std::min(kTile, text.keys - tile);
    if (count < columns)  // the weight of this key may be multiplied, see add_tile_to_strip()
      std::fill_n(block.rows + count * stride, stride, 0.0f);
    if constexpr (std::is_same_v<Right, uint32_t>) {
      uint32_t* words = reinterpret_cast<uint32_t*>(block.rows);
      pair_rows(columns, stride, words);
      return {stored, kPanel, panel / 2, words, stride, count};
    } else {
      Tile<float> here{panels, kPanel, panel, block.rows, stride, count};
      if (std::is_same_v<Stored, int8_t>)
        here.key_scales = here.value_scales =
            reinterpret_cast<const float*>(page + keys.scales_at());
      return here;
    }
  }
  void prefetch(Interval) const {}

 private:
  // out [kPanel, stride] = the transpose of the first elements of panel [width, kPanel], zeros
  // after the last one.
  static void transpose_panel(const float* panel, int64_t width, int64_t stride, float* out) {
    for (int64_t d = 0; d < stride; d += kPanel) {
      const int64_t count = std::min(kPanel, width - d);
      if (count == kPanel) {
        transpose_rows({panel + d * kPanel, kPanel, kPanel}, kPanel, kPanel, out + d, stride);
        continue;
      }
      for (int64_t key = 0; key < kPanel; ++key)
        for (int64_t i = 0; i < kPanel; ++i)
          out[key * stride + d + i] = i < count ? panel[(d + i) * kPanel + key] : 0.0f;
    }
  }
  // Replaces rows [count, stride] of widened bf16 by words [count / 2, stride] of two rows.
  static void pair_rows(int64_t count, int64_t stride, uint32_t* rows) {
    for (int64_t row = 0; row < count; row += 2) {
      for (int64_t d = 0; d < stride; d += kLanes) {
        const uint32_t* from = rows + row * stride + d;
        const WordVector first = hn::Load(Words(), from), second = hn::Load(Words(), from + stride);
        hn::Store(hn::Or(first, hn::ShiftRight<16>(second)), Words(), rows + row / 2 * stride + d);
      }
    }
  }
};

// Processes all keys for a block of rows.
template <class Tiles>
void walk(const Block& block, const Tiles& tiles) {
  using Arithmetic = typename Tiles::Arithmetic;
  const int64_t rows = block.queries.rows();
  std::vector<Sight> sights;
  Sight all;
  for (int64_t row = 0; row < rows; row += kStrip) {
    sights.push_back(sight_of(block.queries, row, std::min(kStrip, rows - row)));
    all.merge(sights.back());
  }
  for (int64_t tile = all.begin / kTile * kTile; tile < all.end; tile += kTile) {
    const Columns seen = seen_columns(all, tile, Arithmetic::kColumns);
    if (seen.empty()) continue;
    const auto here = tiles.at(tile, seen.end);
    for (int64_t row = 0; row < rows; row += kStrip) {
      const int64_t end = std::min(row + kStrip, rows);
      tiles.prefetch({tile + kTile + kTile * row / rows, tile + kTile + kTile * end / rows});
      add_tile_to_strip<Arithmetic>(block, row, end - row,
                                    sights[static_cast<size_t>(row / kStrip)], here, tile);
    }
  }
}

template <class Tiles, class... Sources>
void attend(Out y, Out lse, In q, const QueryRows& queries, const Sources&... sources) {
  Scratch scratch(block_floats(queries));
  const Block block = make_block(queries, scratch);
  start<typename Tiles::Arithmetic>(block, q);
  walk(block, Tiles{block, sources...});
  finish<typename Tiles::Arithmetic>(block, y, lse);
}

// Returns the number of queries per task: as many as fit in L2 with their results, since they share
// loaded tiles, but fewer if there are too few tasks for the threads.
int64_t queries_per_task(const AttentionShape& shape) {
  constexpr int64_t kMost = 256, kFewest = 32, kTasksPerThread = 3;
  const int64_t group = shape.heads / shape.kv_heads, heads = shape.batch * shape.kv_heads;
  int64_t queries = std::max<int64_t>(1, kMost / group);
  while (queries > kFewest &&
         heads * ((shape.queries + queries - 1) / queries) < kTasksPerThread * thread_count())
    queries /= 2;
  return queries;
}

void attention_forward(Out y, Out lse, In q, In k, In v, const AttentionShape& shape) {
  const int64_t block = queries_per_task(shape), blocks = (shape.queries + block - 1) / block;
  share_out(work_of(shape), shape.batch * shape.kv_heads * blocks, [&](int64_t task) {
    // In reverse order: under a causal mask, the last blocks take longest.
    const int64_t begin = (blocks - 1 - task % blocks) * block;
    const int64_t head = task / blocks % shape.kv_heads, batch = task / blocks / shape.kv_heads;
    const QueryRows queries{shape, batch, head, begin, std::min(block, shape.queries - begin)};
    with_arithmetic(in_halves(q, k, v), [&](auto arithmetic) {
      attend<TilesOfRows<decltype(arithmetic)>>(y, lse, q, queries, KeyRows{k, shape.width},
                                                KeyRows{v, shape.values()});
    });
  });
}

// One task: a block of a sequence's queries, for one key-value head.
struct PagedTask {
  const PagedText* span;
  const AttentionShape* shape;
  int64_t kv_head, begin, count;
};

// Like work_of(), but at least the time of reading the keys and values from memory, which dominates
// when few queries share them (decoding).
int64_t paged_work_of(const AttentionShape& shape) {
  constexpr int64_t kReading = 24;  // multiply-adds in the time that reading one number takes
  const int64_t rows = shape.heads / shape.kv_heads * shape.queries;
  return shape.kv_heads * shape.keys * shape.width * std::max(rows, kReading);
}

template <class Separate, class Shared>
void attend_pages(Out y, In q, const QueryRows& queries, const PagedText& text,
                  const PagedAttention& paged) {
  const PageLayout keys = key_pages(paged), values = value_pages(paged);
  if (paged.values_in_keys)
    attend<Shared>(y, {}, q, queries, text, keys, values);
  else
    attend<Separate>(y, {}, q, queries, text, keys, values);
}

template <class Pairs>
constexpr auto attend_words =
    attend_pages<PageTiles<Bf16Words<Pairs>>, SharedTiles<uint32_t, Bf16Words<Pairs>>>;

// Returns the function for pages of this type and blocks of few or many queries; for a few,
// widening the pages saves too little.
auto attend_text(DType pages, bool few) {
  using Exact = ExactFloats<float>;
  if (pages == DType::f32) return attend_pages<PageTiles<Exact>, SharedTiles<float, Exact>>;
  if (pages == DType::i8) {
    using Shared = SharedTiles<int8_t, Exact>;
    return few ? attend_pages<PageTiles<ExactFloats<int8_t>>, Shared>
               : attend_pages<WidenedTiles<int8_t, Exact>, Shared>;
  }
  const Bf16Products how = bf16_products();
  if (how == Bf16Products::pairs) return attend_words<NativePairs>;
  // With AMX too: CPUs that have it multiply fp32 faster than pairs of bf16 in vectors.
  if (how != Bf16Products::model_pairs && !few)
    return attend_pages<WidenedTiles<uint32_t, Bf16Floats>, SharedTiles<uint32_t, Bf16Floats>>;
  return attend_words<ModelPairs>;
}

void attention_of_spans(Out y, In q, const PagedAttention& paged,
                        const std::vector<PagedText>& spans) {
  std::vector<AttentionShape> shapes;
  std::vector<PagedTask> tasks;
  shapes.reserve(spans.size());  // tasks keep pointers to its elements
  tasks.reserve(spans.size() * static_cast<size_t>(paged.kv_heads));
  int64_t work = 0;
  for (const PagedText& span : spans) {
    const AttentionShape& shape = shapes.emplace_back(shape_of(paged, span));
    work += paged_work_of(shape);
    const int64_t block = queries_per_task(shape);
    for (int64_t head = 0; head < shape.kv_heads; ++head)
      for (int64_t begin = 0; begin < shape.queries; begin += block)
        tasks.push_back({&span, &shape, head, begin, std::min(block, shape.queries - begin)});
  }
  share_out(work, std::ssize(tasks), [&](int64_t i) {
    const PagedTask& task = tasks[static_cast<size_t>(i)];
    const int64_t first = task.span->row * paged.heads;  // of the heads in q and y
    const int64_t of_y = first * task.shape->values() * static_cast<int64_t>(size_of(y.dtype));
    const int64_t of_q = first * paged.width * static_cast<int64_t>(size_of(q.dtype));
    const QueryRows queries{*task.shape, 0, task.kv_head, task.begin, task.count};
    attend_text(paged.pages, queries.rows() < kStrip)(
        {static_cast<char*>(y.data) + of_y, y.dtype},
        {static_cast<const char*>(q.data) + of_q, q.dtype}, queries, *task.span, paged);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(attention_forward);
HWY_EXPORT(attention_of_spans);

void attention(Out y, Out lse, In q, In k, In v, const AttentionShape& shape) {
  const FloatMode mode(in_halves(q, k, v) ? kFlushToZero : FloatMode::current());
  HWY_DYNAMIC_DISPATCH(attention_forward)(y, lse, q, k, v, shape);
}

void attention_paged(Out y, In q, const PagedAttention& shape,
                     const std::vector<PagedText>& spans) {
  const FloatMode mode(shape.pages == DType::bf16 ? kFlushToZero : FloatMode::current());
  HWY_DYNAMIC_DISPATCH(attention_of_spans)(y, q, shape, spans);
}

}  // namespace fovea::cpu
#endif
