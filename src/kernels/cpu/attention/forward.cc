// Tiled attention: FlashAttention (Dao et al. 2022; Dao 2023) with the online softmax of Milakov
// and Gimelshein (2018). A thread stores only the weights of one strip of queries and one tile of
// keys at a time.
//
// The bits of a query's result depend only on its own vector and on the keys that it sees: tiles
// begin at multiples of kTile and are processed in ascending order, every sum is one chain or
// kLanes chains over ascending keys, and a masked key adds an exact 0.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/forward.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include "kernels/cpu/attention/simd-inl.h"
// clang-format on

#include <numbers>
#include <vector>

#include "base/math.h"
#include "kernels/cpu/cpu.h"
#include "kernels/kv_page.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {
namespace {

// The state of a block of rows while the keys are processed.
struct Block {
  QueryRows queries;
  int64_t padded, value_padded;
  float* q;        // [rows, padded], times scale / ln 2, so that the softmax is in powers of two
  float* y;        // [rows, value_padded], the sum of weight * v, relative to 2^pivot
  float* pivots;   // [rows], weights are 2^(score - pivot); about the largest score so far
  float* sums;     // [rows, kLanes], sums of weights
  float* factors;  // [kTile], dropout factors; all 1 if there is no dropout
  float* scores;   // [kStrip, kTile]; later holds the weights
  float* k;        // [padded, kTile]
  float* rows;     // [kTile, the larger width], a copy of rows of k or v if one is needed
};

// Raises a row's pivot to its largest score so far and rescales its sums, but only if the score
// exceeds the pivot by more than kSlack: a weight may be as large as 2^kSlack, so the branch is
// rarely taken (the idea is from FlashAttention-4).
HWY_INLINE void raise_pivot(const Block& block, int64_t row, const float* scores, Columns columns) {
  constexpr float kSlack = 8;
  const Floats tag;
  constexpr int64_t kSize = vector_size();
  Vector most = hn::Set(tag, kHidden);
  for (int64_t c = columns.begin; c < columns.end; c += kSize)
    most = hn::Max(most, hn::Load(tag, scores + c));
  const float largest = hn::GetLane(hn::MaxOfLanes(tag, most)), old = block.pivots[row];
  if (!(largest > old + kSlack)) return;
  block.pivots[row] = largest;
  const Vector rescale = exp2(hn::Set(tag, old - largest));
  float* sums = block.sums + row * kLanes;
  for (int64_t i = 0; i < kLanes; i += kSize)
    hn::Store(hn::Mul(hn::Load(tag, sums + i), rescale), tag, sums + i);
  float* y = block.y + row * block.value_padded;
  for (int64_t d = 0; d < block.value_padded; d += kSize)
    hn::Store(hn::Mul(hn::Load(tag, y + d), rescale), tag, y + d);
}

// Turns a row of scores into weights relative to 2^pivot, adds them to the row's sums, and then
// multiplies them by `factors`: those of dropout, or the scales of int8 values.
HWY_INLINE void weigh_row(const Block& block, int64_t row, float* HWY_RESTRICT scores,
                          Columns columns, const float* HWY_RESTRICT factors) {
  const Floats tag;
  const float pivot = block.pivots[row];
  // If all keys were masked so far, the weights are 0.
  const Vector shift = hn::Set(tag, pivot == kHidden ? 0.0f : pivot);
  for (int64_t lane = 0; lane < kLanes; lane += vector_size()) {
    float* HWY_RESTRICT sums = block.sums + row * kLanes + lane;
    Vector sum = hn::Load(tag, sums);
    for (int64_t c = columns.begin + lane; c < columns.end; c += kLanes) {
      const Vector weight = exp2(hn::Sub(hn::Load(tag, scores + c), shift));
      sum = hn::Add(sum, weight);
      hn::Store(hn::Mul(weight, hn::LoadU(tag, factors + c)), tag, scores + c);
    }
    hn::Store(sum, tag, sums);
  }
}

// Multiplies scores [rows, kTile] by scales [kTile].
HWY_INLINE void scale_scores(float* HWY_RESTRICT scores, int64_t rows, Columns columns,
                             const float* HWY_RESTRICT scales) {
  const Floats tag;
  for (int64_t c = columns.begin; c < columns.end; c += vector_size()) {
    const Vector scale = hn::LoadU(tag, scales + c);
    for (int64_t r = 0; r < rows; ++r) {
      float* score = scores + r * kTile + c;
      hn::Store(hn::Mul(hn::Load(tag, score), scale), tag, score);
    }
  }
}

// A tile of keys and values in the form that the products read.
template <class Element>
struct Tile {
  const Element* keys;  // transposed, in panels [D, kLanes]
  int64_t key_inner, key_panel;
  const Element* values;  // [count, value_stride]
  int64_t value_stride, count;
  // Scales [kTile] of int8 keys and values; null for floating-point elements.
  const float* key_scales = nullptr;
  const float* value_scales = nullptr;
};

template <class Element>
void add_tile_to_strip(const Block& block, int64_t row, int64_t rows, const Sight& sight,
                       const Tile<Element>& here, int64_t tile) {
  const Columns columns = seen_columns(sight, tile);
  if (columns.empty()) return;
  const AttentionShape& shape = block.queries.shape;
  const int64_t width = columns.end - columns.begin, padded = block.padded;
  const int64_t value_padded = block.value_padded;
  // The columns after the last key have weight 0.
  const int64_t values = std::min(columns.end, here.count) - columns.begin;
  float* scores = block.scores + columns.begin;
  multiply<Element>({block.q + row * padded, padded, 1,
                     here.keys + columns.begin / kLanes * here.key_panel, here.key_inner, scores,
                     kTile, rows, width, shape.width, false, here.key_panel});
  if (here.key_scales != nullptr) scale_scores(block.scores, rows, columns, here.key_scales);
  bend_scores(block.scores, block.queries, row, rows, tile, columns, nullptr);
  if (!columns.whole) hide_unseen(block.scores, block.queries, row, rows, tile, columns);
  for (int64_t r = 0; r < rows; ++r) raise_pivot(block, row + r, block.scores + r * kTile, columns);
  for (int64_t r = 0; r < rows; ++r) {
    if (shape.dropout.probability > 0)
      dropout_factors(shape, block.queries.index(row + r), tile, block.factors);
    weigh_row(block, row + r, block.scores + r * kTile, columns,
              here.value_scales != nullptr ? here.value_scales : block.factors);
  }
  multiply<Element>({scores, kTile, 1, here.values + columns.begin * here.value_stride,
                     here.value_stride, block.y + row * value_padded, value_padded, rows,
                     value_padded, values, true});
}

void start(const Block& block, In q) {
  const AttentionShape& shape = block.queries.shape;
  const int64_t rows = block.queries.rows();
  const float factor = static_cast<float>(shape.scale * std::numbers::log2e);
  for (int64_t row = 0; row < rows; ++row)
    load_row(block.q + row * block.padded, q, block.queries.offset(row, shape.width), shape.width,
             block.padded, factor);
  std::fill(block.y, block.y + rows * block.value_padded, 0.0f);
  std::fill(block.sums, block.sums + rows * kLanes, 0.0f);
  std::fill(block.pivots, block.pivots + rows, kHidden);
  std::fill(block.factors, block.factors + kTile, 1.0f);
}

void finish(const Block& block, Out y, Out lse) {
  const int64_t width = block.queries.shape.values();
  for (int64_t row = 0; row < block.queries.rows(); ++row) {
    const float sum = sum_of_lanes(block.sums + row * kLanes);
    const float inverse = sum == 0 ? 0.0f : 1.0f / sum;
    store_row(y, block.queries.offset(row, width), block.y + row * block.value_padded, width,
              inverse);
    if (lse.data == nullptr) continue;
    const float log =
        sum == 0 ? kHidden : block.pivots[row] * std::numbers::ln2_v<float> + math::log(sum);
    store_row(lse, block.queries.index(row), &log, 1, 1.0f);
  }
}

Block make_block(const QueryRows& queries, Scratch& scratch) {
  const int64_t rows = queries.rows(), padded = cpu::padded(queries.shape.width);
  const int64_t value_padded = cpu::padded(queries.shape.values());
  return {queries,
          padded,
          value_padded,
          scratch.take(rows * padded),
          scratch.take(rows * value_padded),
          scratch.take(rows),
          scratch.take(rows * kLanes),
          scratch.take(kTile),
          scratch.take(kStrip * kTile),
          scratch.take(kTile * padded),
          scratch.take(kTile * std::max(padded, value_padded))};
}

int64_t block_floats(const QueryRows& queries) {
  const int64_t rows = queries.rows(), padded = cpu::padded(queries.shape.width);
  const int64_t value_padded = cpu::padded(queries.shape.values());
  return rows * (padded + value_padded + kLanes) + Scratch::size_of(rows) +
         kTile * (1 + kStrip + padded + std::max(padded, value_padded));
}

// Tiles of contiguous keys and values, [B, capacity, G, ...].
struct RowTiles {
  const Block& block;
  KeyRows k, v;

  // Returns the first `columns` columns of the tile that begins at key `tile`.
  Tile<float> at(int64_t tile, int64_t columns) const {
    const QueryRows& queries = block.queries;
    const int64_t padded = block.padded, count = std::min(kTile, queries.shape.keys - tile);
    const TileRows keys = rows_of_tile(block.rows, k, queries, tile);
    transpose_tile(keys, columns, padded, block.rows, block.k);
    TileRows values{block.rows, block.value_padded, count};
    if (queries.rows() < kStrip) {  // copying would cost more than reading with a stride
      values = rows_of_tile(block.rows, v, queries, tile);
    } else {
      load_tile(block.rows, v, queries, tile, columns);
    }
    return {block.k, kTile, kLanes, values.data, values.stride, values.count};
  }
  // Prefetches the given keys and their values.
  void prefetch(Interval keys) const {
    prefetch_keys(k, block.queries, keys);
    prefetch_keys(v, block.queries, keys);
  }
};

// Tiles of the keys and values of one sequence, read directly from its pages.
template <class Element>
struct PageTiles {
  const Block& block;
  const PagedText& text;
  const PageLayout &keys, &values;

  Tile<Element> at(int64_t tile, int64_t) const {
    const int64_t head = block.queries.kv_head;
    const char* k =
        static_cast<const char*>(text.key_pages[tile / kTile]) + head * keys.head_bytes();
    const char* v =
        static_cast<const char*>(text.value_pages[tile / kTile]) + head * values.head_bytes();
    Tile<Element> here{
        reinterpret_cast<const Element*>(k), kLanes,       kLanes * keys.width,
        reinterpret_cast<const Element*>(v), values.row(), std::min(kTile, text.keys - tile)};
    if (std::is_same_v<Element, int8_t>) {
      here.key_scales = reinterpret_cast<const float*>(k + keys.scales_at());
      here.value_scales = reinterpret_cast<const float*>(v + values.scales_at());
    }
    return here;
  }
  void prefetch(Interval) const {}  // a head's part of a page is contiguous
};

// Converts `count` elements, a multiple of kLanes, to floats.
template <class Element>
void widen(const Element* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; i += vector_size())
    hn::Store(load_floats(from + i), Floats(), to + i);
}

// Tiles of pages, converted to floats once for many queries.
template <class Element>
struct WidenedTiles {
  const Block& block;
  const PagedText& text;
  const PageLayout &keys, &values;

  Tile<float> at(int64_t tile, int64_t columns) const {
    const auto page = PageTiles<Element>{block, text, keys, values}.at(tile, columns);
    widen(page.keys, columns * keys.width, block.k);
    widen(page.values, page.count * values.row(), block.rows);
    return {block.k,           page.key_inner, page.key_panel,  block.rows,
            page.value_stride, page.count,     page.key_scales, page.value_scales};
  }
  void prefetch(Interval) const {}
};

// Tiles of pages of keys whose first elements are the values: these are transposed once for all
// queries and heads.
template <class Element>
struct SharedTiles {
  const Block& block;
  const PagedText& text;
  const PageLayout &keys, &values;

  Tile<float> at(int64_t tile, int64_t columns) const {
    const char* page = static_cast<const char*>(text.key_pages[tile / kTile]) +
                       block.queries.kv_head * keys.head_bytes();
    const auto* stored = reinterpret_cast<const Element*>(page);
    const float* panels = block.k;
    if constexpr (std::is_same_v<Element, float>)
      panels = stored;
    else
      widen(stored, columns * keys.width, block.k);
    const int64_t panel = kLanes * keys.width, stride = block.value_padded;
    for (int64_t key = 0; key < columns; key += kLanes)
      transpose_panel(panels + key / kLanes * panel, keys.width, stride, block.rows + key * stride);
    Tile<float> here{panels, kLanes, panel, block.rows, stride, std::min(kTile, text.keys - tile)};
    if (std::is_same_v<Element, int8_t>)
      here.key_scales = here.value_scales = reinterpret_cast<const float*>(page + keys.scales_at());
    return here;
  }
  void prefetch(Interval) const {}

 private:
  // out [kLanes, stride] = the transpose of the first elements of panel [width, kLanes], zeros
  // after the last one.
  static void transpose_panel(const float* panel, int64_t width, int64_t stride, float* out) {
    for (int64_t d = 0; d < stride; d += kLanes) {
      const int64_t count = std::min(kLanes, width - d);
      if (count == kLanes) {
        transpose_rows({panel + d * kLanes, kLanes, kLanes}, kLanes, kLanes, out + d, stride);
        continue;
      }
      for (int64_t key = 0; key < kLanes; ++key)
        for (int64_t i = 0; i < kLanes; ++i)
          out[key * stride + d + i] = i < count ? panel[(d + i) * kLanes + key] : 0.0f;
    }
  }
};

// Processes all keys for a block of rows.
template <class Tiles>
void walk(const Block& block, const Tiles& tiles) {
  const int64_t rows = block.queries.rows();
  std::vector<Sight> sights;
  Sight all;
  for (int64_t row = 0; row < rows; row += kStrip) {
    sights.push_back(sight_of(block.queries, row, std::min(kStrip, rows - row)));
    all.merge(sights.back());
  }
  for (int64_t tile = all.begin / kTile * kTile; tile < all.end; tile += kTile) {
    const Columns seen = seen_columns(all, tile);
    if (seen.empty()) continue;
    const auto here = tiles.at(tile, seen.end);
    for (int64_t row = 0; row < rows; row += kStrip) {
      const int64_t end = std::min(row + kStrip, rows);
      tiles.prefetch({tile + kTile + kTile * row / rows, tile + kTile + kTile * end / rows});
      add_tile_to_strip(block, row, end - row, sights[static_cast<size_t>(row / kStrip)], here,
                        tile);
    }
  }
}

template <class Tiles, class... Sources>
void attend(Out y, Out lse, In q, const QueryRows& queries, const Sources&... sources) {
  Scratch scratch(block_floats(queries));
  const Block block = make_block(queries, scratch);
  start(block, q);
  walk(block, Tiles{block, sources...});
  finish(block, y, lse);
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
    attend<RowTiles>(y, lse, q, queries, KeyRows{k, shape.width}, KeyRows{v, shape.values()});
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

template <class Element>
void attend_pages(Out y, In q, const QueryRows& queries, const PagedText& text,
                  const PagedAttention& paged) {
  const PageLayout keys = key_pages(paged), values = value_pages(paged);
  if (paged.values_in_keys)
    attend<SharedTiles<Element>>(y, {}, q, queries, text, keys, values);
  else if (std::is_same_v<Element, float> || queries.rows() < kStrip)  // widening saves too little
    attend<PageTiles<Element>>(y, {}, q, queries, text, keys, values);
  else
    attend<WidenedTiles<Element>>(y, {}, q, queries, text, keys, values);
}

void attend_text(Out y, In q, const QueryRows& queries, const PagedText& text,
                 const PagedAttention& paged) {
  switch (paged.pages) {
    case DType::bf16: return attend_pages<bf16>(y, q, queries, text, paged);
    case DType::i8: return attend_pages<int8_t>(y, q, queries, text, paged);
    default: return attend_pages<float>(y, q, queries, text, paged);
  }
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
    attend_text({static_cast<char*>(y.data) + of_y, y.dtype},
                {static_cast<const char*>(q.data) + of_q, q.dtype},
                {*task.shape, 0, task.kv_head, task.begin, task.count}, *task.span, paged);
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
  HWY_DYNAMIC_DISPATCH(attention_forward)(y, lse, q, k, v, shape);
}

void attention_paged(Out y, In q, const PagedAttention& shape,
                     const std::vector<PagedText>& spans) {
  HWY_DYNAMIC_DISPATCH(attention_of_spans)(y, q, shape, spans);
}

}  // namespace fovea::cpu
#endif
