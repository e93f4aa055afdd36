// From the same means, k-means finds the groups of scikit-learn
// (tools/goldens/make_vector_metrics.py).

#include "probing/k_means.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/threads.h"

namespace fovea::study {
namespace {

nlohmann::json k_means_goldens() {
  std::ifstream file("tests/goldens/vector_metrics.json");
  EXPECT_TRUE(file) << "run from the project's root";
  return nlohmann::json::parse(file).at("means");
}

TEST(KMeans, ConvergesToTheGroupsOfScikitLearn) {
  const nlohmann::json all = k_means_goldens();
  ASSERT_FALSE(all.empty());
  for (const auto& each : all) {
    const auto vectors = each["vectors"].get<std::vector<float>>();
    const auto width = each["width"].get<int64_t>();
    const VectorGroups found =
        converged_groups(vectors, width, each["start"].get<std::vector<double>>());
    EXPECT_EQ(found.of, each["groups"].get<std::vector<int32_t>>());
    EXPECT_NEAR(found.distances, each["distances"].get<double>(), 1e-9);
    EXPECT_LE(k_means(vectors, width, 4, 1).distances, found.distances + 1e-9);
  }
}

TEST(KMeans, GivesTheSameGroupsForAnyNumberOfThreads) {
  const auto vectors = k_means_goldens()[0]["vectors"].get<std::vector<float>>();
  const VectorGroups once = k_means(vectors, 3, 5, 3);
  const int before = thread_count();
  for (const int count : {1, 3}) {
    set_threads(count);
    const VectorGroups again = k_means(vectors, 3, 5, 3);
    EXPECT_EQ(again.of, once.of);
    EXPECT_EQ(again.distances, once.distances);
  }
  set_threads(before);
}

TEST(KMeans, GroupsEqualVectors) {
  const std::vector<float> vectors(8, 0.5f);
  EXPECT_EQ(k_means(vectors, 2, 3, 1).of, (std::vector<int32_t>(4, 0)));
}

}  // namespace
}  // namespace fovea::study
