#include "data/log_mel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/math.h"
#include "base/threads.h"

namespace fovea {
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

// Returns triangular filters of equal area; each extends from the centre of its left neighbour to
// the centre of its right neighbour.
// -> [bins, kFrequencies]
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

// Returns the waveform, cut or padded with silence to `samples`. Adds half a window at each end, a
// mirror image of the samples there.
std::vector<double> padded(const std::vector<float>& waveform, int64_t samples) {
  const int64_t half = kWindow / 2;
  const auto at = [&](int64_t i) {
    i = std::abs(i);
    if (i >= samples) i = 2 * (samples - 1) - i;
    return i < std::ssize(waveform) ? static_cast<double>(waveform[static_cast<size_t>(i)]) : 0.0;
  };
  std::vector<double> all(static_cast<size_t>(samples + kWindow));
  for (int64_t i = 0; i < std::ssize(all); ++i) all[static_cast<size_t>(i)] = at(i - half);
  return all;
}

// Computes the power [kFrequencies] of a window by the definition of the discrete Fourier
// transform. kWindow is not a power of two, and the definition is fast enough: a few milliseconds
// for a second of speech.
struct Transform {
  std::vector<double> cosines, sines, hann;

  Transform() {
    for (int64_t i = 0; i < kWindow; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / kWindow;
      const math::SineAndCosine turn = math::sine_and_cosine(angle);
      cosines.push_back(turn.cosine);
      sines.push_back(turn.sine);
      hann.push_back(0.5 - 0.5 * turn.cosine);
    }
  }

  void operator()(const double* samples, double* power) const {
    for (int64_t f = 0; f < kFrequencies; ++f) {
      double real = 0, imaginary = 0;
      int64_t turn = 0;  // f * i modulo kWindow
      for (int64_t i = 0; i < kWindow; ++i) {
        const double x = samples[i] * hann[static_cast<size_t>(i)];
        real += x * cosines[static_cast<size_t>(turn)];
        imaginary -= x * sines[static_cast<size_t>(turn)];
        turn += f;
        if (turn >= kWindow) turn -= kWindow;
      }
      power[f] = real * real + imaginary * imaginary;
    }
  }
};

}  // namespace

std::vector<float> log_mel(const std::vector<float>& waveform, int64_t bins, int64_t frames) {
  check(bins > 0 && frames > 1, "log_mel: {} bins, {} frames; expected at least 1 bin and 2 frames",
        bins, frames);
  const std::vector<double> samples = padded(waveform, frames * kHop), filters = mel_filters(bins);
  const Transform transform;
  std::vector<double> logs(static_cast<size_t>(bins * frames));
  parallel_for(frames, 1, [&](int64_t first, int64_t last) {
    std::vector<double> power(kFrequencies);
    for (int64_t frame = first; frame < last; ++frame) {
      transform(samples.data() + frame * kHop, power.data());
      for (int64_t bin = 0; bin < bins; ++bin) {
        const double* filter = filters.data() + bin * kFrequencies;
        double sum = 0;
        for (int64_t f = 0; f < kFrequencies; ++f) sum += filter[f] * power[static_cast<size_t>(f)];
        logs[static_cast<size_t>(bin * frames + frame)] = math::log10(std::max(sum, 1e-10));
      }
    }
  });
  constexpr double kRange = 8;  // decades below the maximum
  const double least = *std::max_element(logs.begin(), logs.end()) - kRange;
  std::vector<float> result;
  for (const double log : logs)
    result.push_back(static_cast<float>((std::max(log, least) + 4) / 4));
  return result;
}

}  // namespace fovea
