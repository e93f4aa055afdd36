#pragma once

#include <vector>

#include "fovea/spec.h"
#include "kernels/kv_page.h"
#include "tensor/tensor.h"

namespace fovea {

// Memory for keys and values in pages (Kwon et al. 2023). A page holds kPageTokens tokens for every
// layer of a decoder, in the layout of kernels/kv_page.h, and may have several users: texts with a
// common prefix, and the prefix cache. Pages that were never written take no memory.
class PagePool {
 public:
  struct Layout {
    int64_t layers = 0, kv_heads = 0, head_width = 0;
    DType dtype = DType::f32;
    PageLayout of_layer() const { return {kv_heads, head_width, dtype}; }
    size_t page_bytes() const {  // bytes of one page, for all layers
      return static_cast<size_t>(2 * layers * of_layer().page_bytes());
    }
  };

  static Layout layout_for(const StackSpec& decoder, DType dtype) {
    return {decoder.layers, decoder.attention.kv_heads, decoder.attention.head_width, dtype};
  }

  PagePool(const Layout& layout, int64_t pages);

  const Layout& layout() const { return layout_; }
  int64_t pages() const { return static_cast<int64_t>(users_.size()); }
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }

  int32_t take();  // returns a page, now with one user; -1 if all are in use
  void share(int32_t page) { ++users_[static_cast<size_t>(page)]; }
  void release(int32_t page);  // removes one user
  int64_t users(int32_t page) const { return users_[static_cast<size_t>(page)]; }
  void copy(int32_t from, int32_t to) const;

  char* keys(int64_t layer, int32_t page) const { return at(2 * layer, page); }
  char* values(int64_t layer, int32_t page) const { return at(2 * layer + 1, page); }

 private:
  char* at(int64_t plane, int32_t page) const {
    return memory_.data_as<char>() + (page * 2 * layout_.layers + plane) * plane_bytes_;
  }

  Layout layout_;
  int64_t plane_bytes_;  // bytes of one layer's keys or values in a page
  Tensor memory_;        // u8 [pages, 2 layers, bytes]
  std::vector<int64_t> users_;
  std::vector<int32_t> free_;
};

}  // namespace fovea
