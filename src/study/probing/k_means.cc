#include "probing/k_means.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/threads.h"
#include "fovea/core/random.h"

namespace fovea::study {
namespace {

constexpr int64_t kMostSteps = 300, kRowsOfTask = 256;
constexpr uint32_t kStarts = 10;

// Writes the squared distances of a vector to all means, which are given by column, [width,
// groups], so that the sums of several groups are in one vector register.
void measure(const float* vector, int64_t width, const std::vector<double>& columns,
             std::vector<double>& distances) {
  std::fill(distances.begin(), distances.end(), 0.0);
  const double* mean = columns.data();
  for (int64_t d = 0; d < width; ++d)
    for (double& distance : distances) {
      const double difference = double{vector[d]} - *mean++;
      distance += difference * difference;
    }
}

std::vector<double> columns_of(const std::vector<double>& means, int64_t width) {
  const int64_t groups = std::ssize(means) / width;
  std::vector<double> columns(means.size());
  for (int64_t k = 0; k < groups; ++k)
    for (int64_t d = 0; d < width; ++d)
      columns[static_cast<size_t>(d * groups + k)] = means[static_cast<size_t>(k * width + d)];
  return columns;
}

// Assigns each vector to the closest mean. Returns whether any assignment changed.
bool assign(std::span<const float> vectors, int64_t width, const std::vector<double>& means,
            VectorGroups& groups) {
  const std::vector<double> columns = columns_of(means, width);
  const int64_t count = std::ssize(vectors) / width;
  std::vector<double> closest(static_cast<size_t>(count));
  const std::vector<int32_t> before = groups.of;
  parallel_tasks((count + kRowsOfTask - 1) / kRowsOfTask, [&](int64_t task) {
    std::vector<double> distances(means.size() / static_cast<size_t>(width));
    for (int64_t i = task * kRowsOfTask; i < std::min(count, (task + 1) * kRowsOfTask); ++i) {
      measure(vectors.data() + i * width, width, columns, distances);
      const auto best = std::min_element(distances.begin(), distances.end());
      groups.of[static_cast<size_t>(i)] = static_cast<int32_t>(best - distances.begin());
      closest[static_cast<size_t>(i)] = *best;
    }
  });
  groups.distances = std::accumulate(closest.begin(), closest.end(), 0.0);
  return groups.of != before;
}

void move_means(std::span<const float> vectors, int64_t width, const std::vector<int32_t>& of,
                std::vector<double>& means) {
  std::vector<double> sums(means.size());
  std::vector<int64_t> sizes(means.size() / static_cast<size_t>(width));
  for (size_t i = 0; i < of.size(); ++i) {
    double* sum = sums.data() + of[i] * width;
    for (int64_t d = 0; d < width; ++d)
      sum[d] += double{vectors[i * static_cast<size_t>(width) + static_cast<size_t>(d)]};
    ++sizes[static_cast<size_t>(of[i])];
  }
  for (size_t j = 0; j < means.size(); ++j)
    if (const int64_t size = sizes[j / static_cast<size_t>(width)]; size > 0)
      means[j] = sums[j] / static_cast<double>(size);
}

// k-means++: a vector becomes the next mean with a probability proportional to its squared distance
// to the closest mean.
std::vector<double> first_means(std::span<const float> vectors, int64_t width, int64_t groups,
                                Random random) {
  const int64_t count = std::ssize(vectors) / width;
  std::vector<double> means, closest(static_cast<size_t>(count), 1), distance(1);
  for (int64_t k = 0; k < groups; ++k) {
    double left = random.uniform_double() * std::accumulate(closest.begin(), closest.end(), 0.0);
    int64_t chosen = 0;
    for (int64_t i = 0; i < count && left >= 0; ++i) {
      if (closest[static_cast<size_t>(i)] > 0) chosen = i;
      left -= closest[static_cast<size_t>(i)];
    }
    const float* vector = vectors.data() + chosen * width;
    const std::vector<double> mean(vector, vector + width);
    means.insert(means.end(), mean.begin(), mean.end());
    for (int64_t i = 0; i < count; ++i) {
      measure(vectors.data() + i * width, width, mean, distance);
      double& least = closest[static_cast<size_t>(i)];
      least = k == 0 ? distance[0] : std::min(least, distance[0]);
    }
  }
  return means;
}

}  // namespace

VectorGroups converged_groups(std::span<const float> vectors, int64_t width,
                              std::vector<double> means) {
  VectorGroups groups;
  groups.of.assign(vectors.size() / static_cast<size_t>(width), -1);
  for (int64_t step = 0; assign(vectors, width, means, groups) && step < kMostSteps; ++step)
    move_means(vectors, width, groups.of, means);
  return groups;
}

VectorGroups k_means(std::span<const float> vectors, int64_t width, int64_t groups, uint64_t seed) {
  VectorGroups best;
  best.distances = std::numeric_limits<double>::infinity();
  for (uint32_t start = 0; start < kStarts; ++start) {
    const Random random(seed, Stream::init, start);
    VectorGroups found =
        converged_groups(vectors, width, first_means(vectors, width, groups, random));
    if (found.distances < best.distances) best = std::move(found);
  }
  return best;
}

}  // namespace fovea::study
