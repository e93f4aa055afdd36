#include "tasks/image_examples.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/math.h"
#include "base/threads.h"
#include "image/augment.h"
#include "image/rand_augment.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

// Substreams of the random numbers of rows, apart from those of LengthBatches.
constexpr uint32_t kFirstRow = 1u << 16;

LengthBatches batches_of(size_t count, const ImageExamples::Settings& settings) {
  return LengthBatches(std::vector<LengthBatches::Lengths>(count, {1, 0}),
                       std::numeric_limits<int64_t>::max(), settings.batch, settings.seed);
}

// Returns a number with the distribution Beta(a, a), where a is at most 1 (Johnk 1964).
double beta_sample(double a, Random& random) {
  for (;;) {
    const double x = math::pow(random.uniform_double(), 1 / a);
    const double y = math::pow(random.uniform_double(), 1 / a);
    if (x + y > 0 && x + y <= 1) return x / (x + y);
  }
}

Examples::Part part_of(const ImageFiles& files, int64_t tokens) {
  const auto count = std::ssize(files.files);
  return {count, count * tokens, count, 0};
}

}  // namespace

ImageExamples::ImageExamples(ImageFiles training, ImageFiles validation, const Settings& settings)
    : training_(std::move(training)),
      validation_(std::move(validation)),
      settings_(settings),
      batches_(batches_of(training_.files.size(), settings)) {
  learnt = part_of(training_, settings.tokens);
  held_out = part_of(validation_, settings.tokens);
}

Random ImageExamples::random_of(int64_t pass, int64_t row) const {
  // The factor (2^64 / the golden ratio) spreads the passes over all seeds.
  return Random(settings_.seed + static_cast<uint64_t>(pass) * 0x9e3779b97f4a7c15u, Stream::shuffle,
                kFirstRow + static_cast<uint32_t>(row));
}

void ImageExamples::mix(Batch& batch, int64_t pass) const {
  const int64_t B = batch.labels.dim(0);
  Random random = random_of(pass, B);  // no image's row
  const auto share = static_cast<float>(beta_sample(settings_.augmentation.mixup, random));
  const HostValues<int32_t> labels(batch.labels);
  batch.meaning = MixedLabels{
      tensor_from<int32_t>({B}, [&](int64_t row) { return labels[B - 1 - row]; }), share};
  const HostValues<float> x(batch.source.signal);
  const int64_t size = x.size() / B;
  batch.source.signal = tensor_from<float>(batch.source.signal.shape(), [&](int64_t i) {
    const int64_t row = i / size, other = B - 1 - row;
    return share * x[i] + (1 - share) * x[i + (other - row) * size];
  });
}

media::Image ImageExamples::augmented(const media::Image& image, int64_t pass, int64_t row,
                                      const std::string& name) const {
  const ImageAugmentation& a = settings_.augmentation;
  const media::ImageProcessor& p = settings_.processor;
  Random random = random_of(pass, row);
  const bool flips = a.flip && random.uniform() < 0.5f;
  const media::Image seen =
      a.crop >= 1 ? p.fitted(image, name)
                  : media::resized(
                        fovea::media::part_of(
                            image, media::random_part(image.height, image.width, a.crop, random)),
                        p.height(), p.width(), p.resampling);
  return media::rand_augmented(flips ? media::mirrored(seen) : seen, a.operations, a.magnitude,
                               random);
}

Batch ImageExamples::of(const ImageFiles& files, const std::vector<int64_t>& samples,
                        int64_t pass) const {
  const int64_t B = std::ssize(samples), S = settings_.processor.height();
  Batch batch;
  std::vector<float> pixels(static_cast<size_t>(B * 3 * S * S));
  std::vector<int32_t> labels(samples.size());
  parallel_tasks(B, [&](int64_t row) {
    const auto i = static_cast<size_t>(samples[static_cast<size_t>(row)]);
    const media::Image image = media::read_image(files.files[i]);
    const media::Image seen = pass < 0 ? settings_.processor.fitted(image, files.files[i])
                                       : augmented(image, pass, row, files.files[i]);
    settings_.processor.normalise(seen, pixels.data() + row * 3 * S * S);
    labels[static_cast<size_t>(row)] = files.labels[i];
  });
  batch.source.signal = tensor_of(pixels, {B, 3, S, S});
  batch.labels = tensor_of(labels, {B});
  batch.units = units_of_rows(B);
  batch.predictions = B;
  batch.tokens = B * settings_.tokens;
  if (pass >= 0 && settings_.augmentation.mixup > 0) mix(batch, pass);
  return batch;
}

Batch ImageExamples::training(int64_t pass) const { return of(training_, batches_(pass), pass); }

int64_t ImageExamples::validation_batches() const {
  return (std::ssize(validation_.files) + settings_.batch - 1) / settings_.batch;
}

Batch ImageExamples::validation(int64_t n) const {
  const int64_t first = n * settings_.batch;
  const int64_t count = std::min(settings_.batch, std::ssize(validation_.files) - first);
  std::vector<int64_t> samples(static_cast<size_t>(count));
  std::iota(samples.begin(), samples.end(), first);
  return of(validation_, samples, -1);
}

}  // namespace fovea::train
