#include "transcribe/spectrogram_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/unnamed_file.h"

namespace fovea::infer {

SpectrogramFile::SpectrogramFile(int64_t bins, int64_t window)
    : bins_(bins),
      window_(window),
      file_(::fdopen(unnamed_file(), "w+b")),
      stream_(bins, [this](const float* frames, int64_t count) { store(frames, count); }) {
  if (file_ == nullptr)
    fail(ErrorKind::Failed, "transcribe: cannot open a temporary file: {}", std::strerror(errno));
}

void SpectrogramFile::add(const float* samples, int64_t count) {
  samples_ += count;
  stream_.add(samples, count);
}

void SpectrogramFile::finish() {
  const std::vector<float> silence(
      static_cast<size_t>(std::max<int64_t>(0, window_ * media::kHop - samples_)));
  if (!silence.empty()) stream_.add(silence.data(), std::ssize(silence));
  stream_.finish();
}

double SpectrogramFile::seconds() const {
  return static_cast<double>(samples_) / static_cast<double>(media::kSampleRate);
}

void SpectrogramFile::store(const float* frames, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    levels_.push_back(*std::max_element(frames + i * bins_, frames + (i + 1) * bins_));
  peak_ = std::max(peak_, *std::max_element(levels_.end() - count, levels_.end()));
  const auto values = static_cast<size_t>(count * bins_);
  if (std::fseek(file_.get(), 0, SEEK_END) != 0 ||
      std::fwrite(frames, sizeof(float), values, file_.get()) != values)
    fail(ErrorKind::Failed, "transcribe: cannot write the temporary file of the spectrogram: {}",
         std::strerror(errno));
  frames_ += count;
}

std::vector<float> SpectrogramFile::window_at(int64_t first) const {
  const int64_t count = std::clamp<int64_t>(frames_ - first, 0, window_);
  std::vector<float> logs(static_cast<size_t>(count * bins_));
  if (std::fseek(file_.get(), first * bins_ * static_cast<int64_t>(sizeof(float)), SEEK_SET) != 0 ||
      std::fread(logs.data(), sizeof(float), logs.size(), file_.get()) != logs.size())
    fail(ErrorKind::Failed, "transcribe: cannot read the temporary file of the spectrogram: {}",
         std::strerror(errno));
  media::scale_log_mel(logs, peak_);
  std::vector<float> window(static_cast<size_t>(bins_ * window_));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t bin = 0; bin < bins_; ++bin)
      window[static_cast<size_t>(bin * window_ + i)] = logs[static_cast<size_t>(i * bins_ + bin)];
  return window;
}

}  // namespace fovea::infer
