#pragma once

#include <array>
#include <string>

#include "image/resize.h"

namespace fovea::media {

// Turns images into the pixels that a model reads, as the image processors of transformers do:
// resize, cut out the centre, multiply, normalise.
struct ImageProcessor {
  // `shortest` > 0: the shorter side gets this size, and the longer one keeps the ratio of the
  // sides. All 0: this step is left out.
  struct Size {
    int64_t height = 0, width = 0, shortest = 0;
    bool empty() const { return height == 0 && shortest == 0; }
  };
  Size resize = {224, 224, 0}, crop = {};
  Resampling resampling = Resampling::bilinear;
  double factor = 1 / 255.0;
  std::array<float, 3> mean = {0.5f, 0.5f, 0.5f}, deviation = {0.5f, 0.5f, 0.5f};
  bool rounds = false;  // the place of a crop is rounded as by torchvision
  bool pads = false;    // first, to a square, with the mean colour
  // See tiles_of(): the longer side gets this size before anything else; 0 = this step is left out.
  int64_t longest = 0;
  bool divides = false;  // into tiles of resize.height x resize.width

  // Reads preprocessor_config.json of a model's folder, or the image_processor in
  // processor_config.json, or the pretrained_cfg in timm's config.json. Throws BadFile if there is
  // none or a value is invalid; Unsupported if the processor does something else, or its images
  // differ in size.
  static ImageProcessor open(const std::string& folder);
  std::string json() const;  // preprocessor_config.json

  int64_t height() const { return crop.empty() ? resize.height : crop.height; }
  int64_t width() const { return crop.empty() ? resize.width : crop.width; }
  // Returns the image as the model sees it. Throws BadFile if the resized image would have more
  // than kMostPixels; `name` is the image's name in errors.
  Image fitted(const Image& image, const std::string& name) const;
  // Writes the normalised pixels of an image of height() x width() to pixels [3, height, width].
  void normalise(const Image& fitted, float* pixels) const;
};

}  // namespace fovea::media
