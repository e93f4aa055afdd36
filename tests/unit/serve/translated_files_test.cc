#include "serve/protocols/translated_files.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

TEST(TranslatedFiles, AreFoundUntilTheirTimeHasPassed) {
  TranslatedFiles::Clock::time_point now;
  TranslatedFiles files([&] { return now; });
  const std::string first = files.keep("one");
  now += std::chrono::minutes(20);
  const std::string second = files.keep("two");
  EXPECT_NE(first, second);
  ASSERT_NE(files.find(first), nullptr);
  EXPECT_EQ(*files.find(first), "one");
  now += TranslatedFiles::kLifetime - std::chrono::minutes(20);
  EXPECT_EQ(files.find(first), nullptr);
  EXPECT_EQ(*files.find(second), "two");
  EXPECT_EQ(files.find("0.txt"), nullptr);
}

TEST(TranslatedFiles, OldOnesMakeRoom) {
  TranslatedFiles files;
  const std::string first = files.keep("one");
  std::string last;
  for (size_t i = 0; i < TranslatedFiles::kMostFiles; ++i) last = files.keep("two");
  EXPECT_EQ(files.find(first), nullptr);
  EXPECT_NE(files.find(last), nullptr);
  // A text that is larger than the room is kept alone.
  const std::string large = files.keep(std::string(TranslatedFiles::kMostBytes + 1, 'a'));
  EXPECT_EQ(files.find(last), nullptr);
  EXPECT_NE(files.find(large), nullptr);
}

}  // namespace
}  // namespace fovea::serve
