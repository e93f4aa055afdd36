#pragma once

// Groups vectors by k-means (Lloyd 1982) with Euclidean distances.

#include <cstdint>
#include <span>
#include <vector>

namespace fovea::study {

struct VectorGroups {
  std::vector<int32_t> of;  // the group of each vector
  double distances = 0;     // sum of the squared distances to the means of the groups
};

// Returns the groups that the means [groups, width] converge to. A group that loses all vectors
// keeps its mean.   vectors [n, width]
VectorGroups converged_groups(std::span<const float> vectors, int64_t width,
                              std::vector<double> means);

// Returns the groups with the smallest distances of ten starts by k-means++ (Arthur and
// Vassilvitskii 2007). Does not depend on the number of threads. `groups` is at most the number of
// vectors.
VectorGroups k_means(std::span<const float> vectors, int64_t width, int64_t groups, uint64_t seed);

}  // namespace fovea::study
