#include <gtest/gtest.h>

#include <array>

#include "unit/kernels/compare.h"

namespace fovea {
namespace {

using test::Array;

TEST(DistanceTerms, MatchTheReference) {
  for (const auto& [heads, queries, keys, vectors] :
       {std::array<int64_t, 4>{1, 1, 1, 1}, {2, 3, 5, 4}, {3, 33, 33, 9}, {1, 70, 20, 90}}) {
    DistanceTerms terms{heads, queries, keys, vectors, 0.37f};
    test::SharedVector<int32_t> rows(
        static_cast<size_t>(queries + keys - 1));  // several distances share a row
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = static_cast<int32_t>(i / 2 % static_cast<size_t>(vectors));
    const Array of_queries = Array::normal(heads * queries * vectors, DType::f32, 1),
                of_keys = Array::normal(heads * keys * vectors, DType::f32, 2),
                scores = Array::normal(heads * queries * keys, DType::f32, 3);
    for (const int which : {1, 2, 3}) {
      const In q = which & 1 ? of_queries.in() : In{}, k = which & 2 ? of_keys.in() : In{};
      test::compare_with_gpu({scores}, "distance_terms",
                             [&](const Kernels& kernel, std::vector<Array>& y) {
                               kernel.distance_terms(y[0].out(), q, k, rows.data(), terms);
                             });
    }
    for (const bool added : {false, true})
      test::compare_with_gpu({of_queries, of_keys}, "distance_terms_backward",
                             [&](const Kernels& kernel, std::vector<Array>& d) {
                               kernel.distance_terms_backward(d[0].out(added), d[1].out(added),
                                                              scores.in(), rows.data(), terms);
                             });
  }
}

}  // namespace
}  // namespace fovea
