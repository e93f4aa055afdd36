// The terms of attention scores that depend on distances; see cpu/distance_terms.cc.

#include "kernels/cuda/dialect.h"

namespace fovea::cuda {

KERNEL(distance_terms)
(Out y, In of_queries, In of_keys, const int32_t* rows, DistanceTerms n, int64_t size) {
  for (int64_t i = first_element(); i < size; i += element_stride()) {
    const int64_t query = i / n.keys, key = i % n.keys, head = query / n.queries;
    const int64_t row = rows[query % n.queries - key + n.keys - 1];
    const float a = of_queries.data != nullptr ? get(of_queries, query * n.vectors + row) : 0;
    const float b =
        of_keys.data != nullptr ? get(of_keys, (head * n.keys + key) * n.vectors + row) : 0;
    put(y, i, n.scale * (a + b));
  }
}

// A thread adds the terms of a query, or of a key, in the order of the CPU.
KERNEL(sum_distance_terms)
(float* sums, In dy, const int32_t* rows, DistanceTerms n, bool of_keys, int64_t size) {
  const int64_t count = of_keys ? n.keys : n.queries, others = of_keys ? n.queries : n.keys;
  for (int64_t i = first_element(); i < size; i += element_stride()) {
    float* const own = sums + i * n.vectors;
    for (int64_t r = 0; r < n.vectors; ++r) own[r] = 0;
    const int64_t head = i / count;
    for (int64_t j = 0; j < others; ++j) {
      const int64_t query = of_keys ? j : i % count, key = of_keys ? i % count : j;
      const float term = n.scale * get(dy, (head * n.queries + query) * n.keys + key);
      own[rows[query - key + n.keys - 1]] += term;
    }
  }
}

}  // namespace fovea::cuda
