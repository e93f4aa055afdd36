#include "audio/log_mel.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <utility>

#include "base/error.h"
#include "base/math.h"
#include "base/threads.h"

namespace fovea::media {
namespace {

constexpr int64_t kWindow = 400;                   // samples: 25 ms
constexpr int64_t kFrequencies = kWindow / 2 + 1;  // of the real transform of a window

// Slaney's mel scale is linear up to kLinearEnd (Hz); above, 27 mels multiply the frequency by 6.4.
constexpr double kLinearEnd = 1000, kLinearStep = 200.0 / 3;
const double kLogStep = math::log(6.4) / 27;

double mel_of(double hertz) {
  if (hertz < kLinearEnd) return hertz / kLinearStep;
  return kLinearEnd / kLinearStep + math::log(hertz / kLinearEnd) / kLogStep;
}

double hertz_of(double mel) {
  const double end = kLinearEnd / kLinearStep;
  return mel < end ? mel * kLinearStep : kLinearEnd * math::exp(kLogStep * (mel - end));
}

}  // namespace

std::vector<double> mel_filters(int64_t bins) {
  std::vector<double> centres;  // of the bins, and one more at each end
  const double top = mel_of(kSampleRate / 2.0);
  for (int64_t i = 0; i < bins + 2; ++i)
    centres.push_back(hertz_of(top * static_cast<double>(i) / static_cast<double>(bins + 1)));
  std::vector<double> filters(static_cast<size_t>(bins * kFrequencies));
  for (int64_t bin = 0; bin < bins; ++bin) {
    const double left = centres[static_cast<size_t>(bin)];
    const double centre = centres[static_cast<size_t>(bin) + 1];
    const double right = centres[static_cast<size_t>(bin) + 2];
    for (int64_t f = 0; f < kFrequencies; ++f) {
      const double hertz = static_cast<double>(f * kSampleRate) / kWindow;
      const double rise = (hertz - left) / (centre - left),
                   fall = (right - hertz) / (right - centre);
      filters[static_cast<size_t>(bin * kFrequencies + f)] =
          std::max(0.0, std::min(rise, fall)) * 2 / (right - left);
    }
  }
  return filters;
}

namespace {

// Computes the power [kFrequencies] of a window with Hann's weights: the discrete Fourier transform
// of a window whose length is not a power of two. The samples i and N - i have the same cosines and
// opposite sines, and the frequencies f and N / 2 - f the same factors up to the signs of odd i, so
// a fourth of the products is left. The inner loops are over frequencies, which vectors of any
// width add in the same order.
struct Transform {
  static constexpr int64_t kHalf = kWindow / 2, kQuarter = kHalf / 2;
  static constexpr int64_t kRow = 104;       // kQuarter + 1, and padding to whole vectors
  std::vector<double> hann, cosines, sines;  // [kWindow], [kHalf + 1, kRow], [kHalf + 1, kRow]

  Transform() : cosines((kHalf + 1) * kRow), sines((kHalf + 1) * kRow) {
    const auto turn = [](int64_t i) {
      return math::sine_and_cosine(2 * std::numbers::pi * static_cast<double>(i % kWindow) /
                                   kWindow);
    };
    for (int64_t i = 0; i < kWindow; ++i) hann.push_back(0.5 - 0.5 * turn(i).cosine);
    for (int64_t i = 0; i <= kHalf; ++i) {
      for (int64_t f = 0; f <= kQuarter; ++f) {
        cosines[static_cast<size_t>(i * kRow + f)] = turn(i * f).cosine;
        sines[static_cast<size_t>(i * kRow + f)] = turn(i * f).sine;
      }
    }
  }

  // Sums over the samples of even and of odd index, for frequencies up to a quarter of the rate.
  struct Sums {
    double cosine[2][kRow] = {}, sine[2][kRow] = {};
  };

  void operator()(const float* samples, double* power) const {
    Sums sums;
    const auto weighted = [&](int64_t i) {
      return static_cast<double>(samples[i]) * hann[static_cast<size_t>(i)];
    };
    for (int64_t i = 0; i <= kHalf; ++i) {
      const bool alone = i == 0 || i == kHalf;  // the sample is its own mirror image
      const double same = alone ? weighted(i) : weighted(i) + weighted(kWindow - i);
      const double opposite = alone ? 0 : weighted(i) - weighted(kWindow - i);
      const double* c = cosines.data() + i * kRow;
      const double* s = sines.data() + i * kRow;
      double* real = sums.cosine[i % 2];
      double* imaginary = sums.sine[i % 2];
      for (int64_t f = 0; f < kRow; ++f) real[f] += same * c[f];
      for (int64_t f = 0; f < kRow; ++f) imaginary[f] += opposite * s[f];
    }
    const auto square = [](double real, double imaginary) {
      return real * real + imaginary * imaginary;
    };
    for (int64_t f = 0; f <= kQuarter; ++f) {
      power[f] = square(sums.cosine[0][f] + sums.cosine[1][f], sums.sine[0][f] + sums.sine[1][f]);
      power[kHalf - f] =
          square(sums.cosine[0][f] - sums.cosine[1][f], sums.sine[0][f] - sums.sine[1][f]);
    }
  }
};

constexpr double kLeastPower = 1e-10;
constexpr int64_t kFramesAtOnce = 256;  // enough work for all threads, little memory

}  // namespace

LogMelStream::LogMelStream(int64_t bins, Sink sink) : bins_(bins), sink_(std::move(sink)) {
  check(bins > 0, "log_mel: {} bins; expected at least 1", bins);
  filters_ = mel_filters(bins);
  for (auto filter = filters_.begin(); filter != filters_.end(); filter += kFrequencies) {
    const auto passes = [](double factor) { return factor != 0; };
    const auto end = filter + kFrequencies, first = std::find_if(filter, end, passes);
    const auto last =
        std::find_if(std::reverse_iterator(end), std::reverse_iterator(first), passes);
    bands_.emplace_back(first - filter, last.base() - filter);
  }
}

void LogMelStream::add(const float* samples, int64_t count) {
  constexpr int64_t kHalf = kWindow / 2;
  for (int64_t i = 0; i < count; ++i) {
    waiting_.push_back(samples[i]);
    // The first half window is the mirror image of the first samples.
    if (++received_ == kHalf + 1) {
      const std::vector<float> first(waiting_.rbegin(), waiting_.rend() - 1);
      waiting_.insert(waiting_.begin(), first.begin(), first.end());
    }
    if (received_ > kHalf && std::ssize(waiting_) == kWindow + (kFramesAtOnce - 1) * kHop)
      compute(kFramesAtOnce);
  }
  if (received_ > kHalf && std::ssize(waiting_) >= kWindow)
    compute((std::ssize(waiting_) - kWindow) / kHop + 1);
}

void LogMelStream::finish() {
  constexpr int64_t kHalf = kWindow / 2;
  const int64_t left = received_ / kHop - frames_;
  check(received_ > kHalf || left == 0, "log_mel: {} samples; expected more than {}", received_,
        kHalf);
  if (left == 0) return;
  for (int64_t i = std::ssize(waiting_) - 2, n = 0; n < kHalf; --i, ++n)
    waiting_.push_back(waiting_[static_cast<size_t>(i)]);
  compute(left);
}

// Computes the next frames, whose samples have arrived.
void LogMelStream::compute(int64_t count) {
  static const Transform transform;
  std::vector<float> logs(static_cast<size_t>(count * bins_));
  parallel_for(count, 8, [&](int64_t first, int64_t last) {
    std::vector<double> power(kFrequencies);
    for (int64_t frame = first; frame < last; ++frame) {
      transform(waiting_.data() + frame * kHop, power.data());
      for (int64_t bin = 0; bin < bins_; ++bin) {
        const double* filter = filters_.data() + bin * kFrequencies;
        const auto [begin, end] = bands_[static_cast<size_t>(bin)];
        double sum = 0;
        for (int64_t f = begin; f < end; ++f) sum += filter[f] * power[static_cast<size_t>(f)];
        const double log = math::log(std::max(sum, kLeastPower));  // faster than log10
        logs[static_cast<size_t>(frame * bins_ + bin)] =
            static_cast<float>(log / std::numbers::ln10);
      }
    }
  });
  frames_ += count;
  waiting_.erase(waiting_.begin(), waiting_.begin() + count * kHop);
  sink_(logs.data(), count);
}

void scale_log_mel(std::vector<float>& logs, float peak) {
  constexpr float kRange = 8;  // decades below the maximum
  for (float& log : logs) log = (std::max(log, peak - kRange) + 4) / 4;
}

std::vector<float> log_mel(const std::vector<float>& waveform, int64_t bins, int64_t frames) {
  check(frames > 1, "log_mel: {} frames; expected at least 2", frames);
  std::vector<float> logs(static_cast<size_t>(bins * frames));
  int64_t at = 0;
  LogMelStream stream(bins, [&](const float* found, int64_t count) {
    for (int64_t i = 0; i < count; ++i, ++at)
      for (int64_t bin = 0; bin < bins; ++bin)
        logs[static_cast<size_t>(bin * frames + at)] = found[i * bins + bin];
  });
  std::vector<float> samples = waveform;
  samples.resize(static_cast<size_t>(frames * kHop));
  stream.add(samples.data(), std::ssize(samples));
  stream.finish();
  scale_log_mel(logs, *std::max_element(logs.begin(), logs.end()));
  return logs;
}

}  // namespace fovea::media
