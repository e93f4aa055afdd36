// The terms of attention scores that depend on distances: sums of numbers that are looked up.

#include <algorithm>
#include <vector>

#include "base/threads.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/stored.h"

namespace fovea::cpu {
namespace {

const float* floats(In x) {
  if (x.data != nullptr && x.dtype != DType::f32)
    fail(ErrorKind::Internal, "distance_terms: the dtype is {}; expected fp32", name_of(x.dtype));
  return static_cast<const float*>(x.data);
}

// Writes or adds, for each of `count` rows of queries or keys, the sums of scale * element(i, j)
// over j = 0 .. others - 1 with rows[distance(i, j)] = r, r = 0 .. R - 1.
template <class Element, class Distance>
void sum_by_row(Out y, const int32_t* rows, const DistanceTerms& n, int64_t count, int64_t others,
                Element element, Distance distance) {
  if (y.data == nullptr) return;
  const int64_t R = n.vectors;
  parallel_for(count, grain_of({count, others + R}), [&](int64_t first, int64_t last) {
    std::vector<float> sums(static_cast<size_t>(R));
    for (int64_t i = first; i < last; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (int64_t j = 0; j < others; ++j)
        sums[static_cast<size_t>(rows[distance(i, j)])] += n.scale * element(i, j);
      float* const to = static_cast<float*>(y.data) + i * R;
      for (int64_t r = 0; r < R; ++r) to[r] = (y.add ? to[r] : 0.0f) + sums[static_cast<size_t>(r)];
    }
  });
}

}  // namespace

void distance_terms(Out y, In of_queries, In of_keys, Indices rows, const DistanceTerms& n) {
  const float *of_query = floats(of_queries), *of_key = floats(of_keys);
  float* const to = static_cast<float*>(y.data);
  const int64_t T = n.queries, S = n.keys, R = n.vectors;
  parallel_for(n.heads * T, grain_of({n.heads * T, S}), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t head = i / T, t = i % T;
      for (int64_t s = 0; s < S; ++s) {
        const int64_t row = rows[n.distance(t, s)];
        const float a = of_query != nullptr ? of_query[i * R + row] : 0;
        const float b = of_key != nullptr ? of_key[(head * S + s) * R + row] : 0;
        to[i * S + s] = n.scale * (a + b);
      }
    }
  });
}

void distance_terms_backward(Out dof_queries, Out dof_keys, In dy, Indices rows,
                             const DistanceTerms& n) {
  const float* const g = floats(dy);
  const int64_t T = n.queries, S = n.keys;
  sum_by_row(
      dof_queries, rows, n, n.heads * T, S, [&](int64_t i, int64_t s) { return g[i * S + s]; },
      [&](int64_t i, int64_t s) { return n.distance(i % T, s); });
  sum_by_row(
      dof_keys, rows, n, n.heads * S, T,
      [&](int64_t i, int64_t t) { return g[(i / S * T + t) * S + i % S]; },
      [&](int64_t i, int64_t t) { return n.distance(t, i % S); });
}

}  // namespace fovea::cpu
