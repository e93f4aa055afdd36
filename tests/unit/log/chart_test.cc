#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "log/record.h"

namespace fovea::train {
namespace {

using Curve = std::vector<std::pair<int64_t, double>>;

// Expects that every element is closed in order and that no number is NaN or infinity.
void expect_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (size_t at = svg.find('<'); at != svg.npos; at = svg.find('<', at + 1)) {
    const size_t end = svg.find('>', at);
    ASSERT_NE(end, svg.npos);
    const std::string tag = svg.substr(at + 1, end - at - 1);
    EXPECT_EQ(tag.find('<'), tag.npos) << tag;
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    if (tag.starts_with("/")) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(svg.find("nan"), svg.npos) << svg;
  EXPECT_EQ(svg.find("inf"), svg.npos) << svg;
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg.substr(0, 20);
}

TEST(Chart, IsWellFormedForASinglePoint) {
  expect_well_formed(chart({{{1, 2.5}}}));
  expect_well_formed(chart({{{1, 2.5}}, {{1, 2.6}}, {{1, 12.5}}}));
  expect_well_formed(chart({{}, {{100, 2.6}}}));
}

TEST(Chart, IsWellFormedForEqualLosses) {
  for (const double loss : {0.0, 1e-9, 2.5, 1e9, 1e30})
    expect_well_formed(chart({{{1, loss}, {2, loss}}, {{2, loss}}}));
}

TEST(Chart, IsWellFormedForLossesOfAnySize) {
  for (const double first : {1e-6, 4.0, 1e4, 1e30})
    expect_well_formed(chart({{{1, first}, {2, 1}, {1000000, 0}}, {{2, 1.5}, {1000000, 0.5}}}));
}

TEST(Chart, StaysSmallForALongRun) {
  Curve curve;
  for (int64_t step = 1; step <= 100000; ++step)
    curve.emplace_back(step, 4 / std::sqrt(static_cast<double>(step)));
  const std::string svg = chart({curve, {{100000, 1}}});
  expect_well_formed(svg);
  EXPECT_LT(svg.size(), 50000u);
}

TEST(Chart, HasAtMostAPointPerColumn) {
  for (const int64_t steps : {600, 601, 1199, 1200, 1201}) {
    Curve curve;
    for (int64_t step = 1; step <= steps; ++step) curve.emplace_back(step, 2);
    const std::string svg = chart({curve});
    const size_t begin = svg.find("<polyline");
    const auto points =
        std::count(svg.begin() + static_cast<std::ptrdiff_t>(begin),
                   svg.begin() + static_cast<std::ptrdiff_t>(svg.find('/', begin)), ',');
    EXPECT_LE(points, 600) << steps;
    EXPECT_GE(points, 300) << steps;
  }
}

}  // namespace
}  // namespace fovea::train
