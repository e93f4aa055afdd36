// Compares with Pillow and with the Pillow-based image processors of transformers:
// tools/goldens/make_images.py. FOVEA_IMAGE_GOLDENS names another folder of such files.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/base64.h"
#include "base/files.h"
#include "base/json.h"
#include "image/processor.h"
#include "support/temporary_folder.h"

namespace fovea::media {
namespace {

using Json = nlohmann::json;

std::string golden_folder() {
  const char* given = std::getenv("FOVEA_IMAGE_GOLDENS");
  return given != nullptr ? given : "tests/goldens/images";
}

Json expected() { return read_json(golden_folder() + "/expected.json"); }

std::string bytes_of(const Json& value) { return from_base64(value.get<std::string>()).value(); }

Image image_of(const Json& json) {
  const std::string rgb = bytes_of(json["rgb"]);
  return {json["height"], json["width"], {rgb.begin(), rgb.end()}};
}

// Returns the largest difference of two samples; 255 for images of different sizes.
int difference(const Image& a, const Image& b) {
  if (a.height != b.height || a.width != b.width || a.pixels.size() != b.pixels.size()) return 255;
  int most = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i)
    most = std::max(most, std::abs(int{a.pixels[i]} - int{b.pixels[i]}));
  return most;
}

TEST(ImageGoldens, FilesHaveThePixelsOfPillow) {
  const Json files = expected()["files"];
  EXPECT_GE(files.size(), 30u);
  for (const auto& [name, image] : files.items())
    EXPECT_LE(difference(read_image(golden_folder() + "/" + name), image_of(image)), 1) << name;
}

TEST(ImageGoldens, ResizedImagesHaveTheBitsOfPillow) {
  const Json json = expected();
  const Image source = image_of(json["source"]);
  EXPECT_EQ(json["resized"].size(), 48u);
  for (const Json& one : json["resized"]) {
    const auto filter = static_cast<Resampling>(one["filter"].get<int>());
    EXPECT_EQ(difference(resized(source, one["height"], one["width"], filter), image_of(one)), 0)
        << one["filter"] << " " << one["height"] << " x " << one["width"];
  }
}

TEST(ImageGoldens, ProcessorsGiveThePixelsOfTransformers) {
  const Json json = expected();
  const Image source = image_of(json["source"]);
  EXPECT_EQ(json["processors"].size(), 6u);
  for (const auto& [name, one] : json["processors"].items()) {
    const TemporaryFolder folder;
    write_file_atomically(folder.path() + "/preprocessor_config.json", one["config"].dump());
    const ImageProcessor processor = ImageProcessor::open(folder.path());
    const int64_t side = one["side"];
    ASSERT_EQ(processor.height(), side) << name;
    const std::string bytes = bytes_of(one["pixels"]);
    std::vector<float> pixels(bytes.size() / 4), found(static_cast<size_t>(3 * side * side));
    std::memcpy(pixels.data(), bytes.data(), bytes.size());
    processor.normalise(processor.fitted(source, "source"), found.data());
    ASSERT_EQ(found.size(), pixels.size()) << name;
    float most = 0;
    for (size_t i = 0; i < found.size(); ++i) most = std::max(most, std::abs(found[i] - pixels[i]));
    EXPECT_LE(most, 1e-6f) << name;
  }
}

}  // namespace
}  // namespace fovea::media
