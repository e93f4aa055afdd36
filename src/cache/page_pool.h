#pragma once

#include <vector>

#include "fovea/spec.h"
#include "kernels/kv_page.h"
#include "ops/offset.h"
#include "tensor/tensor.h"

namespace fovea {

// Memory for keys and values in pages (Kwon et al. 2023). A page holds kPageTokens tokens for every
// layer of a decoder, and may have several users: texts with a common prefix, and the prefix cache.
// An attention layer stores keys and values in the layout of kernels/kv_page.h; a recurrent layer
// stores its state after each token, so that a text can be shortened or continued at any token.
// Pages that were never written take no memory.
class PagePool {
 public:
  // What a layer stores for each token: keys and values, which may differ in width, or a state.
  // Latent attention stores only keys, whose first elements are the values.
  struct Layer {
    PageLayout keys, values;
    int64_t state_size = 0;  // elements of a recurrent layer's state
  };
  struct Layout {
    DType dtype = DType::f32;  // of keys and values
    std::vector<Layer> layers;
    PageLayout memory_keys = {}, memory_values = {};  // of cross-attention

    const Layer& layer(int64_t i) const { return layers[static_cast<size_t>(i)]; }
    DType state_dtype() const { return dtype == DType::f64 ? DType::f64 : DType::f32; }
    int64_t state_bytes(int64_t i) const {  // for one token
      return layer(i).state_size * static_cast<int64_t>(size_of(state_dtype()));
    }
    int64_t layer_bytes(int64_t i) const {
      return layer(i).keys.page_bytes() + layer(i).values.page_bytes() +
             kPageTokens * state_bytes(i);
    }
    size_t page_bytes() const;  // bytes of one page, for all layers
  };

  // Returns the layout of a decoder's layers, with keys and values of `dtype`.
  static Layout layout_for(const StackSpec& decoder, DType dtype);

  PagePool(const Layout& layout, int64_t pages, const Device& device = cpu_device());

  const Layout& layout() const { return layout_; }
  int64_t pages() const { return static_cast<int64_t>(users_.size()); }
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }

  int32_t take();  // returns a page, now with one user; -1 if all are in use
  void share(int32_t page) { ++users_[static_cast<size_t>(page)]; }
  void release(int32_t page);  // removes one user
  int64_t users(int32_t page) const { return users_[static_cast<size_t>(page)]; }
  void copy(int32_t from, int32_t to) const;

  Out keys(int64_t layer, int32_t page) const { return at(Out(memory_), begin_of(layer, page)); }
  Out values(int64_t layer, int32_t page) const {
    return at(Out(memory_), begin_of(layer, page) + layout_.layer(layer).keys.page_bytes());
  }
  const Tensor& memory() const { return memory_; }
  // Returns the place in memory(), in bytes, of the state of a recurrent layer after token `token`
  // of the page.
  int64_t state_begin(int64_t layer, int32_t page, int64_t token) const {
    return begin_of(layer, page) + token * layout_.state_bytes(layer);
  }

 private:
  int64_t begin_of(int64_t layer, int32_t page) const {
    return page * memory_.dim(1) + layer_begins_[static_cast<size_t>(layer)];
  }

  Layout layout_;
  std::vector<int64_t> layer_begins_;  // offset of each layer in a page, in bytes
  Tensor memory_;                      // u8 [pages, bytes]
  std::vector<int64_t> users_;
  std::vector<int32_t> free_;
};

}  // namespace fovea
