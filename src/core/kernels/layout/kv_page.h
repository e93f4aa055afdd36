#pragma once

// The layout of a page: the keys or values of one layer, head by head, as attention reads them:
//
//   keys    [kPageTokens / 16][D][16]  in panels of 16 tokens, so that the lanes of a vector are
//                                      keys, and a query's scores need no transposition
//   values  [kPageTokens][D']          padded with zeros from D to D', a multiple of 16
//
// bf16 is stored in words of two numbers, which the products of attention multiply at once: of two
// adjacent d in keys (after an odd D a zero), of two adjacent tokens in values, the earlier in the
// upper half:
//
//   keys    [kPageTokens / 16][ceil(D / 2)][16][2]
//   values  [kPageTokens / 2][D'][2]
//
// The elements have one stored type. i8 elements are integers from -127 to 127 times a scale. A
// token has one scale per head: its largest magnitude / 127. The scales, f32 [kPageTokens], follow
// the head's numbers.

#include "kernels/kernels.h"

namespace fovea {

constexpr int64_t kPanelTokens = 16;

// The layout of the keys, or of the values: they may differ in width.
struct PageLayout {
  int64_t heads = 0, width = 0;  // G, D; 0 = nothing is stored
  DType dtype = DType::f32;

  constexpr int64_t row() const {
    return (width + kPanelTokens - 1) / kPanelTokens * kPanelTokens;
  }  // D'
  constexpr int64_t scales_at() const {
    return kPageTokens * row() * static_cast<int64_t>(size_of(dtype));
  }
  constexpr int64_t head_bytes() const {
    return scales_at() + (dtype == DType::i8 ? kPageTokens * int64_t{sizeof(float)} : 0);
  }
  constexpr int64_t page_bytes() const { return heads * head_bytes(); }
  // The bytes at the beginning of a head's part with the first `tokens` tokens, without scales.
  constexpr int64_t first_bytes(PagePart part, int64_t tokens) const {
    const int64_t step = part == PagePart::keys ? kPanelTokens : pair();
    const int64_t numbers = part == PagePart::keys ? key_width() : row();
    return (tokens + step - 1) / step * step * numbers * static_cast<int64_t>(size_of(dtype));
  }

  // How many numbers share a word.
  constexpr int64_t pair() const { return dtype == DType::bf16 ? 2 : 1; }
  constexpr int64_t key_width() const { return (width + pair() - 1) / pair() * pair(); }

  // Indices in the head's part. In a word, the number in the upper half comes second.
  constexpr int64_t key_at(int64_t token, int64_t d) const {
    const int64_t word = (token / kPanelTokens * key_width() + d / pair() * pair()) * kPanelTokens +
                         token % kPanelTokens * pair();
    return word + (pair() - 1 - d % pair());
  }
  constexpr int64_t value_at(int64_t token, int64_t d) const {
    return token / pair() * pair() * row() + d * pair() + (pair() - 1 - token % pair());
  }
};

inline PageLayout key_pages(const PagedAttention& paged) {
  return {paged.kv_heads, paged.width, paged.pages};
}
inline PageLayout value_pages(const PagedAttention& paged) {
  return {paged.kv_heads, paged.value_width > 0 ? paged.value_width : paged.width, paged.pages};
}

// Stores x [count, G, D] as the tokens [token, token + count) of a page, rounded to its type. The
// contents of later tokens are lost: the values of bf16 have a zero beside the last token.
void put_in_page(const PageLayout& layout, PagePart part, void* page, int64_t token, In x,
                 int64_t count);
inline void put_in_page(const PageRows& rows) {
  put_in_page(*rows.layout, rows.part, rows.page.data, rows.token, rows.x, rows.count);
}
// Reads one token and head of a page into row [D].
void get_from_page(const PageLayout& layout, PagePart part, const void* page, int64_t token,
                   int64_t head, double* row);

}  // namespace fovea
