#include "search/spherical_k_means.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"
#include "fovea/core/random.h"
#include "nn/linear.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

constexpr int64_t kMostPasses = 100;
constexpr int64_t kRowsAtOnce = 4096;  // vectors whose cosines are in memory at once

// Calls f(first, cosines) for the cosines [rows, K] of consecutive vectors and all centroids [K,
// D].
template <class F>
void each_block(const Tensor& vectors, const Tensor& centroids, const F& f) {
  model::Linear products;
  products.weight = {centroids.shape(), model::Role::matrix, centroids};
  for (int64_t first = 0; first < vectors.dim(0); first += kRowsAtOnce) {
    const int64_t end = std::min(first + kRowsAtOnce, vectors.dim(0));
    f(first, products(vectors.rows(first, end)));
  }
}

// k-means++: a vector becomes the next centroid with a probability proportional to its squared
// distance to the closest centroid, which is 2 - 2 cos.
Tensor first_centroids(const Tensor& vectors, int64_t clusters, uint64_t seed) {
  const int64_t N = vectors.dim(0), D = vectors.dim(1);
  const Tensor centroids = empty({clusters, D});
  std::vector<double> distances(static_cast<size_t>(N), 4);
  Random random(seed, Stream::sampling);
  for (int64_t k = 0; k < clusters; ++k) {
    const double total = std::accumulate(distances.begin(), distances.end(), 0.0);
    double left = random.uniform_double() * total;
    int64_t chosen = 0;
    for (int64_t i = 0; i < N && left >= 0; ++i) {
      if (distances[static_cast<size_t>(i)] > 0) chosen = i;
      left -= distances[static_cast<size_t>(i)];
    }
    const Tensor centroid = vectors.rows(chosen, chosen + 1);
    std::copy_n(centroid.data_as<float>(), D, centroids.data_as<float>() + k * D);
    each_block(vectors, centroid, [&](int64_t first, const Tensor& cosines) {
      for (int64_t i = 0; i < cosines.dim(0); ++i) {
        double& distance = distances[static_cast<size_t>(first + i)];
        const double other = 2 - 2 * double{cosines.data_as<float>()[i]};
        distance = std::clamp(other, 0.0, distance);
      }
    });
    distances[static_cast<size_t>(chosen)] = 0;
  }
  return centroids;
}

// Assigns each vector to the centroid of the largest cosine. Returns whether any assignment
// changed.
bool assign(const Tensor& vectors, VectorClusters& clusters) {
  const int64_t K = clusters.centroids.dim(0);
  bool changed = false;
  each_block(vectors, clusters.centroids, [&](int64_t first, const Tensor& cosines) {
    for (int64_t i = 0; i < cosines.dim(0); ++i) {
      const float* row = cosines.data_as<float>() + i * K;
      const auto best = static_cast<int32_t>(std::max_element(row, row + K) - row);
      int32_t& of = clusters.of[static_cast<size_t>(first + i)];
      changed = changed || of != best;
      of = best;
      clusters.similarities[static_cast<size_t>(first + i)] = row[best];
    }
  });
  return changed;
}

// An empty cluster gets the vector that is farthest from its centroid, of a cluster with others.
void fill_empty(VectorClusters& clusters) {
  std::vector<int64_t> sizes(static_cast<size_t>(clusters.centroids.dim(0)));
  for (const int32_t of : clusters.of) ++sizes[static_cast<size_t>(of)];
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] > 0) continue;
    size_t farthest = clusters.of.size();
    for (size_t i = 0; i < clusters.of.size(); ++i)
      if (sizes[static_cast<size_t>(clusters.of[i])] > 1 &&
          (farthest == clusters.of.size() ||
           clusters.similarities[i] < clusters.similarities[farthest]))
        farthest = i;
    --sizes[static_cast<size_t>(clusters.of[farthest])];
    clusters.of[farthest] = static_cast<int32_t>(k);
    clusters.similarities[farthest] = 1;
    sizes[k] = 1;
  }
}

// Sets each centroid to the direction of the sum of its vectors, added in their order.
void move_centroids(const Tensor& vectors, VectorClusters& clusters) {
  const int64_t D = vectors.dim(1);
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(clusters.centroids.dim(0)));
  for (size_t i = 0; i < clusters.of.size(); ++i)
    members[static_cast<size_t>(clusters.of[i])].push_back(static_cast<int64_t>(i));
  parallel_tasks(std::ssize(members), [&](int64_t k) {
    std::vector<double> sum(static_cast<size_t>(D));
    for (const int64_t i : members[static_cast<size_t>(k)])
      for (int64_t d = 0; d < D; ++d)
        sum[static_cast<size_t>(d)] += vectors.data_as<float>()[i * D + d];
    double squares = 0;
    for (const double x : sum) squares += x * x;
    if (squares == 0) return;  // opposite vectors have no direction: the centroid stays
    for (int64_t d = 0; d < D; ++d)
      clusters.centroids.data_as<float>()[k * D + d] =
          static_cast<float>(sum[static_cast<size_t>(d)] / std::sqrt(squares));
  });
}

}  // namespace

VectorClusters cluster_vectors(const Tensor& vectors, int64_t count, uint64_t seed) {
  const NoGradient off;
  check(count >= 1 && count <= vectors.dim(0), "clusters: {} of {} vectors; expected 1 to {}",
        count, vectors.dim(0), vectors.dim(0));
  VectorClusters clusters;
  clusters.centroids = first_centroids(vectors, count, seed);
  clusters.of.assign(static_cast<size_t>(vectors.dim(0)), -1);
  clusters.similarities.resize(clusters.of.size());
  while (assign(vectors, clusters) && ++clusters.passes < kMostPasses) {
    fill_empty(clusters);
    move_centroids(vectors, clusters);
  }
  fill_empty(clusters);
  return clusters;
}

}  // namespace fovea::infer
