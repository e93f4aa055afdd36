// Compares with the operations of torchvision: tools/goldens/make_image_operations.py.

#include "image/rand_augment.h"

#include <gtest/gtest.h>

#include <set>

#include "base/files.h"
#include "base/json.h"

namespace fovea::media {
namespace {

Image pattern(int64_t width, int64_t height) {
  Image image{height, width, {}};
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (const int64_t value :
           {40 + (x * 7 + y * 13) % 180, (x * x + 3 * y) % 200, 90 + (x * y) % 120})
        image.pixels.push_back(static_cast<uint8_t>(value));
  return image;
}

std::string hex(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

TEST(RandAugment, OperationsHaveTheBitsOfTorchvision) {
  const nlohmann::json cases = read_json("tests/goldens/images/operations.json");
  ASSERT_GT(cases.size(), 80u);
  for (const nlohmann::json& one : cases) {
    const auto operation = static_cast<ImageOperation>(one["operation"].get<int>());
    const Image x = pattern(one["width"], one["height"]);
    const float strength = strength_of(operation, one["magnitude"], x.height, x.width);
    const Image y = transformed(x, operation, one["sign"].get<float>() * strength);
    EXPECT_EQ(hex(y.pixels), one["pixels"].get<std::string>())
        << "operation " << one["operation"] << ", magnitude " << one["magnitude"] << ", sign "
        << one["sign"] << ", width " << x.width;
  }
}

TEST(RandAugment, ImagesOfOneColourAndOnePixelRemainImages) {
  for (const int64_t side : {1, 2, 5}) {
    const Image x{side, side, std::vector<uint8_t>(static_cast<size_t>(side * side * 3), 77)};
    for (int i = 0; i < kImageOperations; ++i) {
      const auto operation = static_cast<ImageOperation>(i);
      for (const int64_t magnitude : {int64_t{0}, kMostMagnitude}) {
        const Image y = transformed(x, operation, strength_of(operation, magnitude, side, side));
        EXPECT_EQ(y.pixels.size(), x.pixels.size());
      }
    }
  }
}

TEST(RandAugment, ChoosesFromAllOperationsByTheSeed) {
  const Image x = pattern(19, 17);
  std::set<std::string> results;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random first(seed, Stream::shuffle), second(seed, Stream::shuffle);
    const Image y = rand_augmented(x, 1, 9, first);
    EXPECT_EQ(y.pixels, rand_augmented(x, 1, 9, second).pixels);
    results.insert(hex(y.pixels));
  }
  // 9 operations have two directions; at magnitude 9, posterize and the others have one result.
  EXPECT_EQ(results.size(), 9u * 2 + 5);
  Random random(1, Stream::shuffle);
  EXPECT_EQ(rand_augmented(x, 0, 9, random).pixels, x.pixels);
}

}  // namespace
}  // namespace fovea::media
