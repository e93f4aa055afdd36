// bf16 products by oneDNN, which has kernels for AVX512-BF16 and for AMX.

#include <dnnl.hpp>
#include <list>
#include <tuple>
#include <unordered_map>

#include "kernels/cpu/gemm_internal.h"
#include "kernels/cpu/gemm_scratch.h"

namespace fovea::cpu {
namespace {

using Memory = dnnl::memory;

// All that a compiled product depends on.
struct Key {
  int64_t m, n, k;
  bool transpose_a, transpose_b, add;
  DType c, bias;
  bool has_bias;
  auto tie() const { return std::tie(m, n, k, transpose_a, transpose_b, add, c, bias, has_bias); }
  bool operator==(const Key& other) const { return tie() == other.tie(); }
};

struct Matmul {
  Memory::desc a, b, bias, c, scratchpad;
  dnnl::matmul primitive;
};

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

Memory::data_type type_of(DType dtype) {
  return dtype == DType::bf16 ? Memory::data_type::bf16 : Memory::data_type::f32;
}

Memory::desc matrix(int64_t rows, int64_t columns, DType dtype, bool transposed) {
  return {{rows, columns},
          type_of(dtype),
          transposed ? Memory::format_tag::ba : Memory::format_tag::ab};
}

Matmul compile(const Key& key) {
  Matmul matmul;
  matmul.a = matrix(key.m, key.k, DType::bf16, key.transpose_a);
  matmul.b = matrix(key.k, key.n, DType::bf16, key.transpose_b);
  matmul.c = matrix(key.m, key.n, key.c, false);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (key.add) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  if (key.has_bias) matmul.bias = matrix(1, key.n, key.bias, false);
  const auto operation = key.has_bias
                             ? dnnl::matmul::desc(matmul.a, matmul.b, matmul.bias, matmul.c)
                             : dnnl::matmul::desc(matmul.a, matmul.b, matmul.c);
  const dnnl::matmul::primitive_desc description(operation, attributes, engine());
  matmul.scratchpad = description.scratchpad_desc();
  matmul.primitive = dnnl::matmul(description);
  return matmul;
}

// The products used last, newest first, for this thread: compiling one takes longer than most of
// them.
const Matmul& cached(const Key& key) {
  // A training step uses about 20 shapes, generation one for each length of the prompt's last
  // chunk.
  constexpr size_t kCapacity = 64;
  thread_local std::list<std::pair<Key, Matmul>> cache;
  for (auto it = cache.begin(); it != cache.end(); ++it) {
    if (it->first == key) {
      cache.splice(cache.begin(), cache, it);
      return it->second;
    }
  }
  cache.emplace_front(key, compile(key));
  if (cache.size() > kCapacity) cache.pop_back();
  return cache.front().second;
}

}  // namespace

void gemm_onednn(Out c, In a, In b, In bias, const GemmShape& shape) {
  const bool has_bias = bias.data != nullptr;
  const Matmul& matmul = cached({shape.m, shape.n, shape.k, shape.transpose_a, shape.transpose_b,
                                 c.add, c.dtype, has_bias ? bias.dtype : DType::f32, has_bias});
  const auto memory = [](const Memory::desc& layout, const void* data) {
    return Memory(layout, engine(), const_cast<void*>(data));  // oneDNN does not write its sources
  };
  float* scratchpad =
      gemm_scratch(GemmScratch::carry, matmul.scratchpad.get_size() / sizeof(float) + 1);
  std::unordered_map<int, Memory> arguments = {
      {DNNL_ARG_SRC, memory(matmul.a, a.data)},
      {DNNL_ARG_WEIGHTS, memory(matmul.b, b.data)},
      {DNNL_ARG_DST, memory(matmul.c, c.data)},
      {DNNL_ARG_SCRATCHPAD, memory(matmul.scratchpad, scratchpad)}};
  if (has_bias) arguments.emplace(DNNL_ARG_BIAS, memory(matmul.bias, bias.data));
  thread_local dnnl::stream stream(engine());
  matmul.primitive.execute(stream, arguments);
  stream.wait();
}

}  // namespace fovea::cpu
