// Attention on pages of keys and values is close to the reference, and has the same bits for any
// batch; with pages of f32 and bf16, those of attention on contiguous rows.

#include <gtest/gtest.h>

#include "kernels/isa.h"
#include "kernels/layout/kv_page.h"
#include "support/gpu.h"
#include "unit/kernels/attention_calls.h"

namespace fovea {
namespace {

using namespace attention_test;

using PagedAttentionTest = EveryIsa;
INSTANTIATE_TEST_SUITE_P(EveryIsa, PagedAttentionTest, ::testing::ValuesIn(testable_isas()),
                         name_of_isa);

// With `shared`, the values are the first elements of the keys.
struct Heads {
  int64_t heads, kv_heads, width, value_width;
  bool shared = false;
};
constexpr Heads kHeads[] = {{1, 1, 1, 1},         {3, 3, 5, 5},         {9, 3, 64, 64},
                            {14, 2, 16, 16},      {4, 4, 80, 80},       {40, 1, 33, 33},
                            {6, 2, 24, 40},       {4, 4, 33, 16},       {5, 1, 40, 32, true},
                            {1, 1, 23, 20, true}, {6, 3, 70, 70, true}, {40, 1, 33, 33, true}};
constexpr DType kPages[] = {DType::f32, DType::bf16, DType::i8};

// The dtype of contiguous rows for which attention gives the bits of these pages.
DType rows_like(const PagedAttention& paged) {
  return paged.pages == DType::bf16 ? DType::bf16 : DType::f32;
}

// Keys and values of a text, contiguous and in pages.
struct Text {
  int64_t queries, keys;
  Mask mask;
  Array k, v;
  std::vector<test::SharedVector<char>> memory;
  std::vector<const void*> key_pages, value_pages;

  Text(int64_t T, int64_t S, Mask m, const PagedAttention& paged, uint64_t seed)
      : queries(T), keys(S), mask(std::move(m)) {
    k = random_array(DType::f32, S * paged.kv_heads * fovea::key_pages(paged).width, seed);
    v = random_array(DType::f32, S * paged.kv_heads * fovea::value_pages(paged).width, seed + 1);
    for (int64_t t = 0; t < S; t += kPageTokens) {
      for (const PagePart part : {PagePart::keys, PagePart::values}) {
        if (part == PagePart::values && paged.values_in_keys) continue;
        const PageLayout layout =
            part == PagePart::keys ? fovea::key_pages(paged) : fovea::value_pages(paged);
        const int64_t row = layout.heads * layout.width;
        // Numbers that are not written are NaN in every dtype that has NaN.
        memory.emplace_back(static_cast<size_t>(layout.page_bytes()), '\xff');
        const Array& x = part == PagePart::keys ? k : v;
        const int64_t count = std::min(kPageTokens, S - t);
        put_in_page(layout, part, memory.back().data(), 0, x.slice(t * row, (t + count) * row).in(),
                    count);
        (part == PagePart::keys ? key_pages : value_pages).push_back(memory.back().data());
      }
    }
  }
  PagedText span(int64_t row) const {
    return {row, queries, keys, mask, key_pages.data(), value_pages.data()};
  }
  // Returns the contents of the pages as a contiguous array [keys, G, width].
  Array held(const PagedAttention& paged, PagePart part) const {
    const bool is_values = part == PagePart::values;
    if (is_values && paged.values_in_keys) return beginnings(paged, held(paged, PagePart::keys));
    const PageLayout layout = is_values ? fovea::value_pages(paged) : fovea::key_pages(paged);
    Array all(rows_like(paged), keys * layout.heads * layout.width);
    std::vector<double> row(static_cast<size_t>(layout.width));
    for (int64_t t = 0; t < keys; ++t) {
      for (int64_t h = 0; h < layout.heads; ++h) {
        const auto page = static_cast<size_t>(t / kPageTokens);
        get_from_page(layout, part, part == PagePart::keys ? key_pages[page] : value_pages[page],
                      t % kPageTokens, h, row.data());
        for (int64_t d = 0; d < layout.width; ++d)
          all.set((t * layout.heads + h) * layout.width + d, row[static_cast<size_t>(d)]);
      }
    }
    return all;
  }

 private:
  // The first elements of the keys.
  static Array beginnings(const PagedAttention& paged, const Array& k) {
    const int64_t rows = k.size() / paged.width, width = paged.value_width;
    Array v(k.dtype, rows * width);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t d = 0; d < width; ++d) v.set(row * width + d, k.get(row * paged.width + d));
    return v;
  }
};

PagedAttention paged_of(const Heads& h, DType pages) {
  PagedAttention paged;
  paged.heads = h.heads;
  paged.kv_heads = h.kv_heads;
  paged.width = h.width;
  paged.value_width = h.value_width;
  paged.values_in_keys = h.shared;
  paged.pages = pages;
  paged.scale = 1 / std::sqrt(static_cast<float>(h.width));
  return paged;
}

// Returns complete prompts, a chunk and single tokens, some with a window or padded keys.
std::vector<Text> some_texts(const PagedAttention& paged) {
  std::vector<Text> texts;
  Mask padded = causal(129);
  padded.valid = {{70, 130}};
  const struct {
    int64_t queries, keys;
    Mask mask;
  } all[] = {{1, 1, causal()},       {1, 64, causal(63)}, {1, 65, causal(64)},
             {1, 200, causal(199)},  {70, 70, causal()},  {30, 130, causal(100)},
             {5, 90, causal(85, 7)}, {1, 130, padded},    {2, 33, Mask()}};
  for (const auto& [queries, keys, mask] : all)
    texts.emplace_back(queries, keys, mask, paged, 10 * texts.size() + 1);
  return texts;
}

Array run(decltype(Kernels::attention_paged) kernel, const PagedAttention& paged, const Array& q,
          const std::vector<Text>& texts, DType out = DType::f32) {
  std::vector<PagedText> spans;
  int64_t row = 0;
  for (const Text& text : texts) {
    spans.push_back(text.span(row));
    row += text.queries;
  }
  Array y(out, q.size() / paged.width * paged.value_width);
  kernel(y.out(), q.in(), paged, spans);
  test::wait_for_gpu();
  return y;
}

int64_t rows_of(const std::vector<Text>& texts) {
  int64_t rows = 0;
  for (const Text& text : texts) rows += text.queries;
  return rows;
}

// Returns whether a query of the text sees a key of a page.
bool sees(const Text& text, int64_t page) {
  for (int64_t query = 0; query < text.queries; ++query) {
    Interval seen[Mask::kMostIntervals];
    const int count = text.mask.intervals(0, query, text.keys, seen);
    for (int i = 0; i < count; ++i)
      if (seen[i].begin < (page + 1) * kPageTokens && seen[i].end > page * kPageTokens) return true;
  }
  return false;
}

TEST_P(PagedAttentionTest, MatchesTheReference) {
  for (const Heads& h : kHeads) {
    for (const DType dtype : kPages) {
      // A weight near the middle of two bf16 may be rounded to the other one.
      const double tolerance = dtype == DType::bf16 ? 1e-3 : 1e-5;
      SCOPED_TRACE(testing::Message() << h.heads << " heads over " << h.kv_heads << " of "
                                      << h.width << ' ' << name_of(dtype));
      PagedAttention paged = paged_of(h, dtype);
      const std::vector<Text> texts = some_texts(paged);
      const Array q = random_array(DType::f32, rows_of(texts) * h.heads * h.width, 3);
      expect_near(run(cpu::attention_paged, paged, q, texts),
                  run(reference::attention_paged, paged, q, texts, DType::f64), "y", tolerance);
      const Array bias = random_array(DType::f32, h.heads * 400, 4);
      paged.softcap = 2;
      paged.bias = bias.in();
      paged.bias_stride = 400;
      paged.bias_zero = 199;
      expect_near(run(cpu::attention_paged, paged, q, texts),
                  run(reference::attention_paged, paged, q, texts, DType::f64),
                  "y, with softcap and bias", tolerance);
    }
  }
}

// int8 is not tested here: its scales are applied at a different point of the computation.
TEST_P(PagedAttentionTest, PagesGiveTheBitsOfContiguousRows) {
  for (const Heads& h : kHeads) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const PagedAttention paged = paged_of(h, dtype);
      const std::vector<Text> texts = some_texts(paged);
      const int64_t row = h.heads * h.width, result_row = h.heads * h.value_width;
      const Array q = random_array(dtype, rows_of(texts) * row, 3);
      const Array y = run(cpu::attention_paged, paged, q, texts, dtype);
      int64_t begin = 0;
      for (const Text& text : texts) {
        const Array mine = q.slice(begin * row, (begin + text.queries) * row);
        const Array k = text.held(paged, PagePart::keys), v = text.held(paged, PagePart::values);
        Array expected(dtype, text.queries * result_row);
        cpu::attention(expected.out(), {}, mine.in(), k.in(), v.in(),
                       fovea::shape_of(paged, text.span(0)));
        EXPECT_TRUE(y.slice(begin * result_row, (begin + text.queries) * result_row) == expected)
            << h.width << ' ' << name_of(dtype) << ", text at " << begin;
        begin += text.queries;
      }
    }
  }
}

// If weights are rounded, equal values give exactly these values: the weights' sum is rounded too.
TEST_P(PagedAttentionTest, EqualValuesAreTheResult) {
  const PagedAttention paged = paged_of({6, 2, 24, 24}, DType::bf16);
  std::vector<Text> texts;
  texts.emplace_back(20, 90, causal(70), paged, 1);
  for (size_t page = 0; page < texts[0].value_pages.size(); ++page) {
    const int64_t count = std::min(kPageTokens, 90 - static_cast<int64_t>(page) * kPageTokens);
    const std::vector<float> ones(static_cast<size_t>(count * 2 * 24), 1.5f);
    put_in_page(value_pages(paged), PagePart::values, const_cast<void*>(texts[0].value_pages[page]),
                0, {ones.data(), DType::f32}, count);
  }
  const Array y = run(cpu::attention_paged, paged, random_array(DType::f32, 20 * 6 * 24, 3), texts);
  for (int64_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y.get(i), 1.5, 1e-5) << i;
}

// A token has the same bits alone and in a long chunk, whose keys and values may be widened first,
// and on another instruction set. Large queries raise the pivot of the softmax often.
TEST_P(PagedAttentionTest, ATokenHasTheSameBitsAloneAndInAnyBatch) {
  for (const Heads& h : kHeads) {
    for (const DType dtype : kPages) {
      const PagedAttention paged = paged_of(h, dtype);
      const std::vector<Text> texts = some_texts(paged);
      const int64_t row = h.heads * h.width, result_row = h.heads * h.value_width;
      Array q = random_array(DType::f32, rows_of(texts) * row, 3);
      for (int64_t i = 0; i < q.size() / 2; ++i) q.set(i, 20 * q.get(i));
      set_threads(3);
      const Array y = run(cpu::attention_paged, paged, q, texts);
      set_threads(1);
      use_isa(testable_isas().back());
      int64_t begin = 0;
      for (const Text& text : texts) {
        for (int64_t t = 0; t < text.queries; ++t) {
          const Array mine = q.slice((begin + t) * row, (begin + t + 1) * row);
          PagedText span = text.span(0);
          span.queries = 1;
          span.mask.first_query += t;
          Array alone(DType::f32, result_row);
          cpu::attention_paged(alone.out(), mine.in(), paged, {span});
          ASSERT_TRUE(y.slice((begin + t) * result_row, (begin + t + 1) * result_row) == alone)
              << h.width << ' ' << name_of(dtype) << ", token " << t << " of the text at " << begin;
        }
        begin += text.queries;
      }
      use_isa(GetParam());
    }
  }
}

// Pages that no query of their text sees may be missing.
TEST_P(PagedAttentionTest, ReadsNoHiddenPage) {
  for (const Heads& h : kHeads) {
    for (const DType dtype : kPages) {
      const PagedAttention paged = paged_of(h, dtype);
      Mask global = causal(350, 70);
      global.global = 3;
      std::vector<Text> texts;
      texts.emplace_back(1, 400, causal(399, 70), paged, 1);
      texts.emplace_back(40, 400, causal(360, 20), paged, 11);
      texts.emplace_back(50, 400, global, paged, 21);
      const Array q = random_array(DType::f32, rows_of(texts) * h.heads * h.width, 3);
      const Array y = run(cpu::attention_paged, paged, q, texts);
      const Array expected = run(reference::attention_paged, paged, q, texts, DType::f64);
      int missing = 0;
      for (Text& text : texts) {
        for (size_t page = 0; page < text.key_pages.size(); ++page) {
          if (sees(text, static_cast<int64_t>(page))) continue;
          ++missing;
          text.key_pages[page] = nullptr;
          if (!paged.values_in_keys) text.value_pages[page] = nullptr;
        }
      }
      EXPECT_EQ(missing, 5 + 5 + 3);
      EXPECT_TRUE(run(cpu::attention_paged, paged, q, texts) == y) << h.width << name_of(dtype);
      EXPECT_TRUE(run(reference::attention_paged, paged, q, texts, DType::f64) == expected)
          << h.width << name_of(dtype);
    }
  }
}

// On the model of a GPU, pages of f32 and i8 give the bits of the CPU. Of bf16, only the pages are
// rounded: queries and weights are not.
TEST(GpuPagedAttention, HasTheBitsOfTheCpu) {
  bool bends = false;
  for (const Heads& h : kHeads) {
    for (const DType dtype : kPages) {
      SCOPED_TRACE(testing::Message() << h.heads << " heads over " << h.kv_heads << " of "
                                      << h.width << ' ' << name_of(dtype));
      PagedAttention paged = paged_of(h, dtype);
      std::vector<Text> texts = some_texts(paged);
      Mask global = causal(150, 70);
      global.global = 3;
      texts.emplace_back(20, 250, global, paged, 21);
      const Array q = random_array(DType::f32, rows_of(texts) * h.heads * h.width, 3);
      const Array bias = random_array(DType::f32, h.heads * 600, 4);
      bends = !bends;
      if (bends) {
        paged.softcap = 2;
        paged.bias = bias.in();
        paged.bias_stride = 600;
        paged.bias_zero = 299;
      }
      const Array expected = run(cpu::attention_paged, paged, q, texts);
      const Array actual = run(test::gpu_kernels().attention_paged, paged, q, texts);
      if (dtype == DType::bf16)
        expect_near(actual, expected, "y", 0x1p-6);
      else
        EXPECT_TRUE(actual == expected);
    }
  }
}

TEST(KvPages, RoundRowsToTheirDType) {
  const int64_t heads = 3, width = 21, tokens = kPageTokens;
  const Array x = random_array(DType::f32, tokens * heads * width, 1);
  std::vector<double> row(static_cast<size_t>(width));
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i8}) {
    const PageLayout layout{heads, width, dtype};
    for (const PagePart part : {PagePart::keys, PagePart::values}) {
      std::vector<char> page(static_cast<size_t>(layout.page_bytes()));
      for (int64_t t = 0; t < tokens; t += 7) {  // in chunks, as tokens arrive
        const int64_t count = std::min<int64_t>(7, tokens - t);
        put_in_page(layout, part, page.data(), t,
                    x.slice(t * heads * width, (t + count) * heads * width).in(), count);
      }
      for (int64_t i = 0; i < tokens * heads; ++i) {
        get_from_page(layout, part, page.data(), i / heads, i % heads, row.data());
        double largest = 0;
        for (int64_t d = 0; d < width; ++d)
          largest = std::max(largest, std::abs(x.get(i * width + d)));
        const double error = dtype == DType::i8     ? largest / 127 * 0.50001
                             : dtype == DType::bf16 ? largest * 0x1p-8
                                                    : 0;
        for (int64_t d = 0; d < width; ++d)
          ASSERT_NEAR(row[static_cast<size_t>(d)], x.get(i * width + d), error) << name_of(dtype);
      }
    }
  }
}

TEST(KvPages, NonFiniteNumbersStayNonFinite) {
  const PageLayout layout{1, 20, DType::i8};
  std::vector<double> row(20);
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    std::vector<float> x(20, 1.0f);
    x[3] = bad;
    std::vector<char> page(static_cast<size_t>(layout.page_bytes()));
    put_in_page(layout, PagePart::keys, page.data(), 9, {x.data(), DType::f32}, 1);
    get_from_page(layout, PagePart::keys, page.data(), 9, 0, row.data());
    for (const double value : row) EXPECT_FALSE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace fovea
