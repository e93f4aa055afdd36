#include "image/augment.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fovea::media {
namespace {

TEST(Augment, PartsHaveTheAreaAndTheRatioOfTheirRange) {
  Random random(3, Stream::shuffle);
  double least = 1, most = 0;
  for (int i = 0; i < 2000; ++i) {
    const ImagePart part = random_part(300, 200, 0.25, random);
    ASSERT_GE(part.top, 0);
    ASSERT_GE(part.left, 0);
    ASSERT_LE(part.top + part.height, 300);
    ASSERT_LE(part.left + part.width, 200);
    const double area = static_cast<double>(part.height * part.width) / (300.0 * 200);
    const double ratio =
        static_cast<double>(part.width) / static_cast<double>(part.height) / (200.0 / 300);
    EXPECT_GE(area, 0.24);
    EXPECT_GT(ratio, 0.74);
    EXPECT_LT(ratio, 1.36);
    least = std::min(least, area), most = std::max(most, area);
  }
  EXPECT_LT(least, 0.3);
  EXPECT_GT(most, 0.95);
}

TEST(Augment, SmallImagesHavePartsToo) {
  Random random(3, Stream::shuffle);
  for (int i = 0; i < 100; ++i) {
    const ImagePart part = random_part(1, 2, 0.1, random);
    EXPECT_EQ(part.height, 1);
    EXPECT_GE(part.width, 1);
    EXPECT_LE(part.left + part.width, 2);
  }
}

TEST(Augment, CopiesThePixelsOfAPart) {
  Image x{2, 3, {}};
  for (uint8_t i = 0; i < 6; ++i) x.pixels.insert(x.pixels.end(), {i, i, i});
  EXPECT_EQ(part_of(x, {1, 1, 1, 2}).pixels, (std::vector<uint8_t>{4, 4, 4, 5, 5, 5}));
  EXPECT_EQ(mirrored(part_of(x, {0, 0, 1, 3})).pixels,
            (std::vector<uint8_t>{2, 2, 2, 1, 1, 1, 0, 0, 0}));
}

}  // namespace
}  // namespace fovea::media
