#include "generate/stop_string_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fovea/core/random.h"

namespace fovea::infer {
namespace {

TEST(StopStringMatcherTest, NeverEmitsAPartOfAStopString) {
  Random random(1, Stream::init);
  const auto below = [&](size_t count) { return random.word() % count; };
  const auto text_of = [&](size_t length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += "ab"[below(2)];
    return text;
  };
  int stopped = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = below(4); i > 0; --i) stops.push_back(text_of(below(6)));
    const std::string text = text_of(below(25));

    // By definition, the text ends before the stop string that is completed first, and before the
    // longest one if several are completed together.
    std::string expected = text;
    bool stops_here = false;
    for (size_t end = 1; end <= text.size() && !stops_here; ++end) {
      for (const std::string& stop : stops) {
        if (stop.empty() || !text.substr(0, end).ends_with(stop)) continue;
        stops_here = true;
        expected = std::min(expected, text.substr(0, end - stop.size()),
                            [](auto& a, auto& b) { return a.size() < b.size(); });
      }
    }

    StopStringMatcher watch(stops);
    std::string shown;
    for (size_t at = 0; at < text.size();) {
      const size_t piece = below(5);
      shown += watch.add(std::string_view(text).substr(at, piece));
      at += piece;
      ASSERT_TRUE(expected.starts_with(shown)) << text << " showed " << shown;
    }
    if (!watch.stopped()) shown += watch.finish();
    ASSERT_EQ(watch.stopped(), stops_here) << text;
    ASSERT_EQ(shown, expected) << text;
    stopped += stops_here;
    EXPECT_EQ(watch.finish(), "");
    if (stops_here) {
      EXPECT_EQ(watch.add("more"), "");
    }
  }
  EXPECT_GT(stopped, 2000);
}

}  // namespace
}  // namespace fovea::infer
