#include "api/median_time.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "base/threads.h"
#include "fovea/bench.h"
#include "fovea/core/random.h"
#include "kernels/isa.h"

namespace fovea {
namespace {

media::Image random_image(int64_t side) {
  Random random(1, Stream::shuffle);
  media::Image image;
  image.height = image.width = side;
  image.pixels.resize(static_cast<size_t>(side * side * 3));
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(random.word());
  return image;
}

}  // namespace

ImageBench bench_images(const infer::ImageModel& model, int64_t count,
                        const BenchOptions& options) {
  const FloatMode mode;
  check_fields(options);
  check(count >= 1, "bench: {} images; expected at least 1", count);
  const media::Image image = random_image(model.spec().input.size);
  const auto source = [&](size_t) { return image; };
  infer::ImageOptions batches;
  batches.batch = options.batch;
  const auto run = [&](int64_t) {
    if (model.has_labels())
      static_cast<void>(model.classify(static_cast<size_t>(count), source, batches));
    else
      static_cast<void>(model.embed(static_cast<size_t>(count), source, batches));
  };
  ImageBench result;
  result.isa = instruction_set();
  result.threads = thread_count();
  result.images = count;
  result.seconds = median_seconds(run, options.runs);
  result.images_per_second = static_cast<double>(count) / result.seconds;
  return result;
}

}  // namespace fovea
