#include "audio/convert_audio.h"

#include <soxr.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "audio/log_mel.h"
#include "base/error.h"

namespace fovea::media {
namespace {

constexpr int64_t kFramesPerRead = 4096;

struct FreeResampler {
  void operator()(soxr* resampler) const { soxr_delete(resampler); }
};

// Mixes the channels and resamples block by block.
class Converter {
 public:
  Converter(std::string name, double rate, int64_t channels, FrameReader reader)
      : name_(std::move(name)),
        rate_(rate),
        channels_(channels),
        reader_(std::move(reader)),
        frames_(static_cast<size_t>(kFramesPerRead * channels)) {
    if (rate == static_cast<double>(kSampleRate)) return;
    soxr_error_t error = nullptr;
    const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    resampler_.reset(
        soxr_create(rate, static_cast<double>(kSampleRate), 1, &error, nullptr, &quality, nullptr));
    if (resampler_ == nullptr)
      fail(ErrorKind::Failed, "{}: the resampler reports: {}", name_,
           error != nullptr ? error : "no memory");
  }

  int64_t read(float* samples, int64_t most) {
    while (at_ == std::ssize(ready_)) {
      if (ended_) return 0;
      ready_.clear();
      at_ = 0;
      const std::vector<float> mono = next_block();
      ended_ = mono.empty();
      if (resampler_ == nullptr) {
        ready_ = mono;
      } else {
        resample(mono);
      }
    }
    const int64_t count = std::min(most, std::ssize(ready_) - at_);
    std::copy_n(ready_.begin() + at_, count, samples);
    at_ += count;
    return count;
  }

 private:
  // Returns the mean of the channels of the next frames; empty at the end.
  std::vector<float> next_block() {
    const int64_t count = reader_(frames_.data(), kFramesPerRead);
    std::vector<float> mono(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < channels_; ++c)
        sum += double{frames_[static_cast<size_t>(i * channels_ + c)]};
      const double mean = sum / static_cast<double>(channels_);
      // Samples of floating-point files may exceed 1, but not by a factor that no device makes.
      constexpr double kMost = 1e6;
      if (!(std::abs(mean) <= kMost))
        fail(ErrorKind::BadFile, "{}: sample {} is {}; expected finite numbers near [-1, 1]", name_,
             position_ + i, mean);
      mono[static_cast<size_t>(i)] = static_cast<float>(mean);
    }
    position_ += count;
    return mono;
  }

  // Appends the resampled block to ready_; an empty block returns what the resampler still holds.
  void resample(const std::vector<float>& mono) {
    const double factor = static_cast<double>(kSampleRate) / rate_;
    const auto room = static_cast<size_t>(factor * kFramesPerRead) + 4096;
    size_t used = 0;
    for (bool more = true; more;) {
      const size_t before = ready_.size();
      ready_.resize(before + room);
      size_t taken = 0, made = 0;
      const soxr_error_t error =
          soxr_process(resampler_.get(), ended_ ? nullptr : mono.data() + used, mono.size() - used,
                       &taken, ready_.data() + before, room, &made);
      if (error != nullptr) fail(ErrorKind::Failed, "{}: the resampler reports: {}", name_, error);
      used += taken;
      ready_.resize(before + made);
      more = made == room || used < mono.size();
    }
  }

  std::string name_;
  double rate_;
  int64_t channels_;
  FrameReader reader_;
  std::vector<float> frames_, ready_;  // frames of the source; samples to return, from at_
  int64_t at_ = 0, position_ = 0;
  bool ended_ = false;
  std::unique_ptr<soxr, FreeResampler> resampler_;
};

}  // namespace

AudioSource converted(const std::string& name, double rate, int64_t channels, FrameReader reader) {
  if (!(rate >= kLeastRate && rate <= kMostRate))
    fail(ErrorKind::BadFile, "{}: has {} samples per second; expected {} to {}", name, rate,
         kLeastRate, kMostRate);
  if (channels < 1 || channels > kMostChannels)
    fail(ErrorKind::BadFile, "{}: has {} channels; expected 1 to {}", name, channels,
         kMostChannels);
  auto converter = std::make_shared<Converter>(name, rate, channels, std::move(reader));
  return [converter](float* samples, int64_t most) { return converter->read(samples, most); };
}

std::vector<float> first_samples(const AudioSource& audio, int64_t most) {
  std::vector<float> samples(static_cast<size_t>(most));
  int64_t count = 0;
  while (count < most) {
    const int64_t some = audio(samples.data() + count, most - count);
    if (some == 0) break;
    count += some;
  }
  samples.resize(static_cast<size_t>(count));
  return samples;
}

}  // namespace fovea::media
