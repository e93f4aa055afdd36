#include "search/spherical_k_means.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/threads.h"
#include "fovea/core/random.h"
#include "support/expect_error.h"

namespace fovea::infer {
namespace {

// Vectors near the first `groups` axes, of unit length: vector i is near axis i % groups.
Tensor grouped_vectors(int64_t count, int64_t width, int64_t groups) {
  const Tensor vectors = empty({count, width});
  Random random(9, Stream::init);
  for (int64_t i = 0; i < count; ++i) {
    double squares = 0;
    float* row = vectors.data_as<float>() + i * width;
    for (int64_t d = 0; d < width; ++d) {
      row[d] = 0.05f * random.normal() + (d == i % groups ? 1.0f : 0.0f);
      squares += row[d] * row[d];
    }
    for (int64_t d = 0; d < width; ++d) row[d] /= static_cast<float>(std::sqrt(squares));
  }
  return vectors;
}

TEST(SphericalKMeans, FindsSeparateGroups) {
  const Tensor vectors = grouped_vectors(300, 12, 5);
  const VectorClusters found = cluster_vectors(vectors, 5, 1);
  for (size_t i = 5; i < 300; ++i) EXPECT_EQ(found.of[i], found.of[i % 5]);
  EXPECT_EQ(std::set<int32_t>(found.of.begin(), found.of.end()).size(), 5u);
  for (const float similarity : found.similarities) EXPECT_GT(similarity, 0.9f);
  // A centroid is the direction of the sum of its vectors.
  std::vector<double> sum(12);
  for (int64_t i = 0; i < 300; i += 5)
    for (int64_t d = 0; d < 12; ++d)
      sum[static_cast<size_t>(d)] += vectors.data_as<float>()[i * 12 + d];
  double squares = 0;
  for (const double x : sum) squares += x * x;
  for (int64_t d = 0; d < 12; ++d)
    EXPECT_NEAR(found.centroids.data_as<float>()[found.of[0] * 12 + d],
                sum[static_cast<size_t>(d)] / std::sqrt(squares), 1e-6);
}

TEST(SphericalKMeans, GivesTheSameBitsForAnyNumberOfThreads) {
  const Tensor vectors = grouped_vectors(5000, 16, 7);
  const int before = thread_count();
  const VectorClusters once = cluster_vectors(vectors, 9, 3);
  for (const int threads : {1, 2, 3}) {
    set_threads(threads);
    const VectorClusters again = cluster_vectors(vectors, 9, 3);
    EXPECT_EQ(again.of, once.of);
    EXPECT_EQ(again.similarities, once.similarities);
    EXPECT_EQ(to_floats(again.centroids), to_floats(once.centroids));
  }
  set_threads(before);
}

TEST(SphericalKMeans, FillsEveryClusterEvenWithEqualVectors) {
  const Tensor equal = full({6, 4}, 0.5);
  const VectorClusters found = cluster_vectors(equal, 6, 0);
  EXPECT_EQ(std::set<int32_t>(found.of.begin(), found.of.end()).size(), 6u);
  const VectorClusters one = cluster_vectors(equal, 1, 0);
  EXPECT_EQ(one.of, std::vector<int32_t>(6, 0));
  expect_error(ErrorKind::InvalidArgument, {"7", "6"}, [&] { cluster_vectors(equal, 7, 0); });
}

}  // namespace
}  // namespace fovea::infer
