#pragma once

// The layout of a page: the keys or values of one layer, head by head, as attention reads them:
//
//   keys    [kPageTokens / 16][D][16]  in panels of 16 tokens, so that the lanes of a vector are
//                                      keys, and a query's scores need no transposition
//   values  [kPageTokens][D']          padded with zeros from D to D', a multiple of 16
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

  int64_t row() const { return (width + kPanelTokens - 1) / kPanelTokens * kPanelTokens; }  // D'
  int64_t scales_at() const { return kPageTokens * row() * static_cast<int64_t>(size_of(dtype)); }
  int64_t head_bytes() const {
    return scales_at() + (dtype == DType::i8 ? kPageTokens * int64_t{sizeof(float)} : 0);
  }
  int64_t page_bytes() const { return heads * head_bytes(); }

  int64_t key_at(int64_t token, int64_t d) const {  // index in the head's part
    return (token / kPanelTokens * width + d) * kPanelTokens + token % kPanelTokens;
  }
  int64_t value_at(int64_t token, int64_t d) const { return token * row() + d; }
};

inline PageLayout key_pages(const PagedAttention& paged) {
  return {paged.kv_heads, paged.width, paged.pages};
}
inline PageLayout value_pages(const PagedAttention& paged) {
  return {paged.kv_heads, paged.value_width > 0 ? paged.value_width : paged.width, paged.pages};
}

// Stores x [count, G, D] as the tokens [token, token + count) of a page, rounded to its type.
void put_in_page(const PageLayout& layout, PagePart part, void* page, int64_t token, In x,
                 int64_t count);
inline void put_in_page(const PageRows& rows) {
  put_in_page(*rows.layout, rows.part, rows.page.data, rows.token, rows.x, rows.count);
}
// Reads one token and head of a page into row [D].
void get_from_page(const PageLayout& layout, PagePart part, const void* page, int64_t token,
                   int64_t head, double* row);

}  // namespace fovea
