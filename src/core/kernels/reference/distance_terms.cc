#include <vector>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {
namespace {

// Calls body(score, of_query, of_key) for each query and key of each head, with the indices of
// their score and of their terms.
template <class Body>
void for_each_pair(Indices rows, const DistanceTerms& n, Body body) {
  for (int64_t head = 0; head < n.heads; ++head)
    for (int64_t t = 0; t < n.queries; ++t)
      for (int64_t s = 0; s < n.keys; ++s) {
        const int64_t row = rows[n.distance(t, s)];
        body((head * n.queries + t) * n.keys + s, (head * n.queries + t) * n.vectors + row,
             (head * n.keys + s) * n.vectors + row);
      }
}

}  // namespace

void distance_terms(Out y, In of_queries, In of_keys, Indices rows, const DistanceTerms& n) {
  const auto term = [](In x, int64_t i) { return x.data == nullptr ? 0 : get(x, i); };
  for_each_pair(rows, n, [&](int64_t score, int64_t of_query, int64_t of_key) {
    put(y, score, n.scale * (term(of_queries, of_query) + term(of_keys, of_key)));
  });
}

void distance_terms_backward(Out dof_queries, Out dof_keys, In dy, Indices rows,
                             const DistanceTerms& n) {
  std::vector<double> of_queries(static_cast<size_t>(n.heads * n.queries * n.vectors));
  std::vector<double> of_keys(static_cast<size_t>(n.heads * n.keys * n.vectors));
  for_each_pair(rows, n, [&](int64_t score, int64_t of_query, int64_t of_key) {
    of_queries[static_cast<size_t>(of_query)] += n.scale * get(dy, score);
    of_keys[static_cast<size_t>(of_key)] += n.scale * get(dy, score);
  });
  for (size_t i = 0; i < of_queries.size(); ++i)
    put(dof_queries, static_cast<int64_t>(i), of_queries[i]);
  for (size_t i = 0; i < of_keys.size(); ++i) put(dof_keys, static_cast<int64_t>(i), of_keys[i]);
}

}  // namespace fovea::reference
