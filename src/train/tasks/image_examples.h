#pragma once

#include <string>
#include <vector>

#include "data/length_batches.h"
#include "fovea/core/random.h"
#include "fovea/train/train.h"
#include "image/processor.h"
#include "loop/examples.h"

namespace fovea::train {

// Files of images and the index of each label.
struct ImageFiles {
  std::vector<std::string> files;
  std::vector<int32_t> labels;
};

// Images, which are read again for each batch, so that their number is not limited by memory.
class ImageExamples : public Examples {
 public:
  struct Settings {
    media::ImageProcessor processor;
    ImageAugmentation augmentation;
    int64_t batch = 1;   // images in a forward pass
    int64_t tokens = 0;  // of an image
    uint64_t seed = 0;
  };
  ImageExamples(ImageFiles training, ImageFiles validation, const Settings& settings);

  Batch training(int64_t pass) const override;
  double passes_per_epoch() const override { return static_cast<double>(batches_.batches()); }
  int64_t validation_batches() const override;
  Batch validation(int64_t n) const override;
  // Returns the numbers of the images of training(pass).
  std::vector<int64_t> samples(int64_t pass) const { return batches_(pass); }

 private:
  // Returns the batch of these images; pass < 0: without augmentation.
  Batch of(const ImageFiles& files, const std::vector<int64_t>& samples, int64_t pass) const;
  // Mixes each image with that of the mirrored row.
  void mix(Batch& batch, int64_t pass) const;
  Random random_of(int64_t pass, int64_t row) const;
  media::Image augmented(const media::Image& image, int64_t pass, int64_t row,
                         const std::string& name) const;

  ImageFiles training_, validation_;
  Settings settings_;
  LengthBatches batches_;
};

}  // namespace fovea::train
