#include "grammar/number_range.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "unit/grammar/reader.h"

namespace fovea::text {
namespace {

struct Bounds {
  const char* keywords;
  double least, most;
  bool above = false, below = false;
};

bool inside(const Bounds& bounds, double x) {
  const bool low = bounds.above ? x > bounds.least : x >= bounds.least;
  return low && (bounds.below ? x < bounds.most : x <= bounds.most);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Bounds kBounds[] = {
    {R"("minimum": 0)", 0, kInfinity},
    {R"("minimum": 7)", 7, kInfinity},
    {R"("minimum": -1.25)", -1.25, kInfinity},
    {R"("maximum": 13)", -kInfinity, 13},
    {R"("maximum": -3)", -kInfinity, -3},
    {R"("exclusiveMinimum": 0)", 0, kInfinity, true},
    {R"("exclusiveMaximum": 0)", -kInfinity, 0, false, true},
    {R"("minimum": 3, "maximum": 3)", 3, 3},
    {R"("minimum": -12, "maximum": 25)", -12, 25},
    {R"("minimum": 0.5, "maximum": 1.5)", 0.5, 1.5},
    {R"("exclusiveMinimum": 9.5, "exclusiveMaximum": 10.5)", 9.5, 10.5, true, true},
    {R"("minimum": -2.75, "exclusiveMaximum": -0.05)", -2.75, -0.05, false, true},
    {R"("minimum": 1, "exclusiveMinimum": 2.5, "maximum": 100)", 2.5, 100, true},
    {R"("minimum": 98, "maximum": 102)", 98, 102},
    {R"("minimum": -1e300, "maximum": 1e1)", -kInfinity, 10},
};

// All numbers with up to three digits before the point and two after it.
TEST(NumberRange, AcceptsExactlyTheNumbersInTheRange) {
  for (const Bounds& bounds : kBounds) {
    Reader number(fmt::format(R"({{"type": "number", {}}})", bounds.keywords));
    Reader integer(fmt::format(R"({{"type": "integer", {}}})", bounds.keywords));
    for (int hundredths = -13'000; hundredths <= 13'000; ++hundredths) {
      if (std::abs(hundredths) > 3'000 && std::abs(hundredths) < 9'700) continue;
      const double x = hundredths / 100.0;
      const std::string text = fmt::format("{:.2f}", x);
      if (text == "-0.00") continue;
      ASSERT_EQ(number.reads(text), inside(bounds, x)) << bounds.keywords << " " << text;
      if (hundredths % 100 != 0) continue;
      const std::string whole = fmt::format("{}", hundredths / 100);
      ASSERT_EQ(number.reads(whole), inside(bounds, x)) << bounds.keywords << " " << whole;
      ASSERT_EQ(integer.reads(whole), inside(bounds, x)) << bounds.keywords << " " << whole;
      ASSERT_FALSE(integer.reads(whole + ".0")) << bounds.keywords;
    }
  }
}

TEST(NumberRange, AcceptsOnlyJson) {
  Reader reader(R"({"minimum": 0, "maximum": 250.5})");
  for (const char* text : {"00", "01", "+1", "1.", ".5", "", "-", "1e1", "-0", "250.51", "1000"})
    EXPECT_FALSE(reader.reads(text)) << text;
  for (const char* text : {"0", "0.0", "250.5", "250.500", "99.999999999999999", "10"})
    EXPECT_TRUE(reader.reads(text)) << text;
}

TEST(NumberRange, HandlesTheLargestNumbers) {
  Reader large(R"({"type": "integer", "minimum": 999999999999998})");
  EXPECT_TRUE(large.reads("999999999999999"));
  EXPECT_FALSE(large.reads("999999999999997"));
  EXPECT_TRUE(large.reads("100000000000000000"));
  EXPECT_FALSE(large.reads("1000000000000000000")) << "more than 18 digits";
  EXPECT_GE(Reader(R"({"minimum": 1e20})").shortest(), Grammar::kNever);
  EXPECT_GE(Reader(R"({"type": "integer", "minimum": 1.25, "maximum": 1.75})").shortest(),
            Grammar::kNever);
  EXPECT_EQ(Reader(R"({"type": "integer", "minimum": 1000})").shortest(), 4);
}

// Schemas of pydantic often have many fields with bounds.
TEST(NumberRange, SharesTheRulesOfManyRanges) {
  std::string properties;
  for (int i = 0; i < 300; ++i) {
    properties += fmt::format(R"({}"p{}": {{"type": "number", "minimum": {}, "maximum": {}.5}})",
                              i == 0 ? "" : ", ", i, i, 10 * i + 1);
  }
  Reader reader(fmt::format(R"({{"properties": {{{}}}}})", properties));
  EXPECT_TRUE(reader.reads(R"({"p7": 70.25})"));
  EXPECT_FALSE(reader.reads(R"({"p7": 71.75})"));
}

}  // namespace
}  // namespace fovea::text
