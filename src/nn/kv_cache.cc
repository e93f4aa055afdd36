#include "nn/kv_cache.h"

#include <cstring>

#include "base/error.h"

namespace fovea {
namespace {

// Copies from [B, T, ...] to the tokens begin.. of [B, capacity, ...].
void put(const Tensor& cache, const Tensor& fresh, int64_t begin) {
  const size_t token = static_cast<size_t>(fresh.dim(2) * fresh.dim(3)) * size_of(fresh.dtype());
  const size_t run = static_cast<size_t>(fresh.dim(1)) * token;
  for (int64_t b = 0; b < fresh.dim(0); ++b) {
    std::memcpy(cache.data_as<char>() + static_cast<size_t>(b * cache.dim(1) + begin) * token,
                fresh.data_as<char>() + static_cast<size_t>(b) * run, run);
  }
}

}  // namespace

KvCache::KvCache(int64_t layers, int64_t batch, int64_t capacity, int64_t kv_heads,
                 int64_t head_width, DType dtype)
    : capacity_(capacity), memory_(static_cast<size_t>(layers)) {
  for (int64_t layer = 0; layer < layers; ++layer) {
    keys_.push_back(empty({batch, capacity, kv_heads, head_width}, dtype));
    values_.push_back(empty({batch, capacity, kv_heads, head_width}, dtype));
  }
}

void KvCache::clear() {
  length_ = 0;
  memory_.assign(memory_.size(), {});
}

void KvCache::append(int64_t layer, const Tensor& k, const Tensor& v) {
  const Tensor& cache = keys(layer);
  const Shape expected{cache.dim(0), k.dim(1), cache.dim(2), cache.dim(3)};
  check(k.shape() == expected && v.shape() == expected && k.dtype() == cache.dtype() &&
            v.dtype() == cache.dtype(),
        "KV cache: keys are {} {}, values {} {}; expected {} {}", name_of(k.dtype()),
        describe(k.shape()), name_of(v.dtype()), describe(v.shape()), name_of(cache.dtype()),
        describe(expected));
  check(length_ + k.dim(1) <= capacity_, "KV cache: {} tokens and {} more; expected at most {}",
        length_, k.dim(1), capacity_);
  put(keys(layer), k, length_);
  put(values(layer), v, length_);
}

}  // namespace fovea
