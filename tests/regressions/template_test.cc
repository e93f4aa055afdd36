#include <gtest/gtest.h>

#include "unit/jinja/rendering.h"

namespace fovea::text::jinja {
namespace {

// A chat template with 20,000 keyword arguments took more than half a second, and a million would
// have taken half an hour: each name was compared with all earlier names.
TEST(ChatTemplates, WithManyNamesTakeLinearTime) {
  constexpr int kMany = 40'000;
  std::string named, bare;
  for (int i = 0; i < kMany; ++i) {
    named += fmt::format("{}k{}={}", i == 0 ? "" : ",", i, i);
    bare += fmt::format("{}{}: {}", i == 0 ? "" : ",", i, i + 1);
  }
  EXPECT_EQ(text_of("{% set d = dict(" + named + ") %}{{ d.k39999 }}"), "39999");
  EXPECT_EQ(
      text_of("{% macro m(" + named + ") %}{{ k7 + k39999 }}{% endmacro %}{{ m(" + named + ") }}"),
      "40006");
  EXPECT_EQ(text_of("{% set d = {" + bare + "} %}{{ d[39999] }} {{ d[7.0] }} {{ d|length }}"),
            "40000 8 40000");
}

}  // namespace
}  // namespace fovea::text::jinja
