#pragma once

#include <vector>

#include "fovea/model/spec.h"
#include "kernels/layout/kv_page.h"
#include "ops/common.h"
#include "spec/mixers.h"
#include "tensor/tensor.h"

namespace fovea::model {

// The maximum number of last tokens that can be removed from a text: rejected speculative tokens.
// Layers of limited reach keep the pages that are read after their removal.
inline constexpr int64_t kMostRejected = 64;
// A page keeps this many states of a recurrent layer, those after its last tokens: the state after
// token t is in slot t % kStateSlots. A full page therefore always has the state after its last
// token, from which other texts continue. A pass over this many tokens takes about as long as one
// over a single token, so more speculative tokens are rarely useful.
inline constexpr int64_t kStateSlots = 16;
static_assert(kPageTokens % kStateSlots == 0);
static_assert(kPageTokens == kChunkTokens);  // a page holds one chunk of linear attention

inline int64_t pages_for(int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

// Rounds a number of elements up, so that what follows them begins at a cache line.
inline int64_t round_up_to_line(int64_t elements) { return (elements + 15) / 16 * 16; }

// The tokens that a layer reads for a new token: the last `window` ones, including the new one, and
// the first `global` ones. window: 0 = all tokens.
struct Reach {
  int64_t window = 0, global = 0;
  bool operator==(const Reach&) const = default;

  // Returns the reach of an attention layer.
  static Reach of(const AttentionSpec& spec, int64_t layer) {
    const int64_t window = window_of(spec, layer);
    return {window, window > 0 ? spec.global : 0};
  }
  // Returns whether tokens after the first `length` ones read page number `page` of the text.
  bool reads(int64_t page, int64_t length) const {
    return window == 0 || page < pages_for(global) ||
           (page + 1) * kPageTokens > length + 1 - window;
  }
};

// Memory for keys and values in pages (Kwon et al. 2023). A page holds kPageTokens tokens, and may
// have several users: texts with a common prefix, and the prefix cache. An attention layer stores
// keys and values in the layout of kernels/layout/kv_page.h; a recurrent layer stores its last
// states. Pages that were never written take no memory.
//
// Layers of equal reach form a group, which has its own pages. Group 0 keeps all tokens, and exists
// even if it has no layers, since its pages count the tokens of a text. The other groups release
// the pages that no further token reads.
class PagePool {
 public:
  // What a layer stores: keys and values, which may differ in width, or states. Latent attention
  // stores only keys, whose first elements are the values.
  struct Layer {
    PageLayout keys, values;
    int64_t state_size = 0;  // elements of a recurrent layer's state
    Reach reach = {};
    // Linear attention: the chunk of a page's tokens, and elements of each token's inputs of the
    // convolution, all of the type of states.
    LinearAttention chunk = {};
    int64_t inputs = 0;
    int64_t chunk_size() const {
      return chunk.heads == 0 ? 0
                              : chunk.state_size() + chunk.keys_size() + chunk.values_size() +
                                    round_up_to_line(chunk.decays_size());
    }
  };
  struct Layout {
    DType dtype = DType::f32;  // of keys and values
    std::vector<Layer> layers;
    PageLayout memory_keys = {}, memory_values = {};  // of cross-attention

    const Layer& layer(int64_t i) const { return layers[static_cast<size_t>(i)]; }
    DType state_dtype() const { return dtype == DType::f64 ? DType::f64 : DType::f32; }
    int64_t state_bytes(int64_t i) const {  // of one state
      return layer(i).state_size * static_cast<int64_t>(size_of(state_dtype()));
    }
    int64_t chunk_bytes(int64_t i) const {  // with the inputs
      return (layer(i).chunk_size() + kPageTokens * layer(i).inputs) *
             static_cast<int64_t>(size_of(state_dtype()));
    }
    int64_t layer_bytes(int64_t i) const {  // of one page
      return layer(i).keys.page_bytes() + layer(i).values.page_bytes() +
             kStateSlots * state_bytes(i) + chunk_bytes(i);
    }
    // The maximum number of speculative tokens per pass.
    int64_t most_rejected() const;
  };

  // The texts for which a pool has memory.
  struct Size {
    int64_t pages = 0;          // of group 0
    int64_t texts = 0;          // maximum number of texts at a time; 0 = any number
    int64_t step_tokens = 512;  // maximum number of prompt tokens per pass, for all texts together
  };

  // Returns the number of pages of a group: as many as `texts` texts of any length can use between
  // and during passes, but at most size.pages. Texts that fit into group 0 therefore fit into every
  // group.
  static int64_t pages_of(const Reach& reach, const Size& size);
  static int64_t bytes_of(const Layout& layout, const Size& size);  // of a pool of this size

  PagePool(const Layout& layout, const Size& size, const Device& device = cpu_device());

  const Layout& layout() const { return layout_; }
  size_t groups() const { return groups_.size(); }
  const Reach& reach(size_t group) const { return groups_[group].reach; }
  size_t group_of(int64_t layer) const { return slots_[static_cast<size_t>(layer)].group; }
  int64_t pages(size_t group = 0) const { return std::ssize(groups_[group].users); }
  int64_t free_pages(size_t group = 0) const { return std::ssize(groups_[group].free); }
  int64_t bytes() const;
  int64_t used_bytes() const;

  int32_t take(size_t group);  // returns a page, now with one user; -1 if all are in use
  void share(size_t group, int32_t page) { ++users_of(group, page); }
  void release(size_t group, int32_t page);  // removes one user
  int64_t users(size_t group, int32_t page) const {
    return groups_[group].users[static_cast<size_t>(page)];
  }
  // Copies the first `tokens` tokens of a page, and the states of recurrent layers.
  void copy(size_t group, int32_t from, int32_t to, int64_t tokens) const;
  int64_t page_bytes(size_t group) const { return groups_[group].page_bytes; }
  // Copies a page to row `row` of rows [n, page_bytes], or back.
  void read_page(size_t group, int32_t page, const Tensor& rows, int64_t row) const;
  void write_page(size_t group, int32_t page, const Tensor& rows, int64_t row) const;

  // The following pages are of the layer's group.
  Out keys(int64_t layer, int32_t page) const {
    return at(Out(memory(layer)), begin_of(layer, page));
  }
  Out values(int64_t layer, int32_t page) const {
    return at(Out(memory(layer)), begin_of(layer, page) + layout_.layer(layer).keys.page_bytes());
  }
  // A page of linear attention: its chunk, and the inputs [64, `inputs`] of its convolution.
  LinearChunk chunk(int64_t layer, int32_t page) const;
  Out inputs(int64_t layer, int32_t page) const;
  const Tensor& memory(int64_t layer) const { return groups_[group_of(layer)].memory; }
  // Returns the offset in memory(layer), in bytes, of the state of a recurrent layer after token
  // `token` of the page.
  int64_t state_begin(int64_t layer, int32_t page, int64_t token) const {
    return begin_of(layer, page) + token % kStateSlots * layout_.state_bytes(layer);
  }

 private:
  struct Group {
    Reach reach = {};
    int64_t page_bytes = 0;
    Tensor memory = {};  // u8 [pages, page_bytes]; empty if no layer is in the group
    std::vector<int64_t> users = {};
    std::vector<int32_t> free = {};
  };
  struct PageSlot {  // of a layer
    size_t group = 0;
    int64_t begin = 0;  // in a page, in bytes
  };

  void copy_part(int64_t layer, PagePart part, int64_t from, int64_t to, int64_t tokens) const;
  int64_t begin_of(int64_t layer, int32_t page) const {
    return page * groups_[group_of(layer)].page_bytes + slots_[static_cast<size_t>(layer)].begin;
  }
  int64_t& users_of(size_t group, int32_t page) {
    return groups_[group].users[static_cast<size_t>(page)];
  }

  Layout layout_;
  std::vector<Group> groups_;
  std::vector<PageSlot> slots_;
};

}  // namespace fovea::model
