#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// Keys and values of the tokens read so far, a pair of tensors [B, capacity, G, D] for each layer;
// and for cross-attention those of the encoder's output, which are made once.
class KvCache {
 public:
  KvCache(int64_t layers, int64_t batch, int64_t capacity, int64_t kv_heads, int64_t head_width,
          DType dtype);

  int64_t length() const { return length_; }  // tokens in it, the same for each layer
  int64_t capacity() const { return capacity_; }

  // Puts k and v [B, T, G, D] behind what is there. The tokens count once advance() says that all
  // layers have them.
  void append(int64_t layer, const Tensor& k, const Tensor& v);
  void advance(int64_t tokens) { length_ += tokens; }
  void clear();

  const Tensor& keys(int64_t layer) const { return keys_[static_cast<size_t>(layer)]; }
  const Tensor& values(int64_t layer) const { return values_[static_cast<size_t>(layer)]; }

  struct Pair {
    Tensor keys, values;  // [B, S, G, D]; absent until a layer has set them
  };
  Pair& memory(int64_t layer) { return memory_[static_cast<size_t>(layer)]; }

 private:
  int64_t capacity_, length_ = 0;
  std::vector<Tensor> keys_, values_;
  std::vector<Pair> memory_;
};

}  // namespace fovea
