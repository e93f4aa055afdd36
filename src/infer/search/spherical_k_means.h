#pragma once

// Groups vectors by their directions: spherical k-means (Dhillon and Modha 2001, Concept
// Decompositions for Large Sparse Text Data Using Clustering), which begins with the centroids of
// k-means++ (Arthur and Vassilvitskii 2007).

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace fovea::infer {

struct VectorClusters {
  Tensor centroids;                 // f32 [clusters, D], of unit length
  std::vector<int32_t> of;          // the cluster of each vector
  std::vector<float> similarities;  // the cosine of each vector and its centroid
  int64_t passes = 0;               // number of assignments
};

// `vectors`: f32 [N, D] of unit length (or zero), N at least `clusters`, which is at least 1. The
// same vectors and seed give the same bits for any number of threads.
VectorClusters cluster_vectors(const Tensor& vectors, int64_t clusters, uint64_t seed);

}  // namespace fovea::infer
