#include "tasks/speech_examples.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "audio/convert_audio.h"
#include "audio/log_mel.h"
#include "base/threads.h"
#include "fovea/media/audio.h"

namespace fovea::train {
namespace {

LengthBatches batches_of(const SpeechPairs& pairs, int64_t batch, uint64_t seed) {
  std::vector<LengthBatches::Lengths> lengths;
  for (int64_t i = 0; i < pairs.labels.count(); ++i)
    lengths.push_back({1, static_cast<int32_t>(pairs.labels.length(i))});
  return LengthBatches(lengths, std::numeric_limits<int64_t>::max(), batch, seed);
}

}  // namespace

std::vector<float> spectrogram_of_file(const std::string& file, int64_t bins, int64_t frames) {
  return media::log_mel(media::first_samples(media::open_audio(file), frames * media::kHop), bins,
                        frames);
}

bool fits_in_window(const std::string& file, int64_t frames) {
  return std::ssize(media::first_samples(media::open_audio(file), frames * media::kHop + 1)) <=
         frames * media::kHop;
}

SpeechExamples::SpeechExamples(SpeechPairs training, SpeechPairs validation,
                               const Settings& settings)
    : training_(std::move(training)),
      validation_(std::move(validation)),
      settings_(settings),
      batches_(batches_of(training_, settings.batch, settings.seed)) {
  const auto part = [&](const SpeechPairs& pairs) -> Part {
    const int64_t count = pairs.labels.count();
    return {count, count * settings.frames / 2 + pairs.labels.total(), pairs.labels.total(),
            pairs.bytes};
  };
  learnt = part(training_);
  held_out = part(validation_);
}

int64_t SpeechExamples::validation_batches() const {
  return (validation_.labels.count() + settings_.batch - 1) / settings_.batch;
}

Batch SpeechExamples::validation(int64_t n) const {
  const int64_t first = n * settings_.batch;
  std::vector<int64_t> samples(
      static_cast<size_t>(std::min(settings_.batch, validation_.labels.count() - first)));
  std::iota(samples.begin(), samples.end(), first);
  return of(validation_, samples);
}

// The decoder reads the start token and then the labels; padding has no labels.
Batch SpeechExamples::of(const SpeechPairs& pairs, const std::vector<int64_t>& samples) const {
  const int64_t B = std::ssize(samples), T = pairs.labels.longest(samples);
  const int64_t size = settings_.bins * settings_.frames;
  Batch batch;
  std::vector<float> signal(static_cast<size_t>(B * size));
  parallel_tasks(B, [&](int64_t row) {
    const auto i = static_cast<size_t>(samples[static_cast<size_t>(row)]);
    const auto spectrogram = spectrogram_of_file(pairs.files[i], settings_.bins, settings_.frames);
    std::copy(spectrogram.begin(), spectrogram.end(), signal.begin() + row * size);
  });
  batch.source.signal = tensor_of(signal, {B, settings_.bins, settings_.frames});
  batch.labels = pairs.labels.rows(samples, T, -1);
  batch.target.ids = pairs.labels.shifted_rows(samples, T, settings_.padding, settings_.start);
  batch.units = units_of_rows(B);
  for (const int64_t i : samples) {
    const int64_t predicted = pairs.labels.length(i);
    batch.predictions += predicted;
    batch.tokens += settings_.frames / 2 + predicted;
  }
  return batch;
}

}  // namespace fovea::train
