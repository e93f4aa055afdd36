#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numbers>

#include "audio/log_mel.h"
#include "safetensors/safetensors.h"
#include "support/shared_folder.h"

namespace fovea {
namespace {

// The expected values are those of transformers' feature extractor for the same second of audio.
TEST(LogMel, MatchesTheReference) {
  const std::string path = shared("fixtures/models/whisper/expected.safetensors");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs " << path;
  const SafeTensors file(path);
  const auto expected = to_floats(file.tensor("log_mel"));
  const auto found = media::log_mel(to_floats(file.tensor("waveform")), 80, 100);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-4) << i;
}

// A tone has its largest value in the band of its frequency; silence has the minimum.
TEST(LogMel, LocatesATone) {
  constexpr int64_t kBins = 80, kFrames = 20;
  std::vector<float> tone;
  for (int i = 0; i < 10 * media::kHop; ++i)
    tone.push_back(std::sin(2 * std::numbers::pi_v<float> * 1000.0f * static_cast<float>(i) /
                            static_cast<float>(media::kSampleRate)));
  const auto mel = media::log_mel(tone, kBins, kFrames);
  int64_t loudest = 0;
  for (int64_t bin = 0; bin < kBins; ++bin)
    if (mel[static_cast<size_t>(bin * kFrames + 5)] >
        mel[static_cast<size_t>(loudest * kFrames + 5)])
      loudest = bin;
  // 1000 Hz is 15 of 45.2 mels; the centres of the bands are 45.2 / 81 apart.
  EXPECT_EQ(loudest, 26);
  EXPECT_NEAR(mel[kFrames - 1], mel[static_cast<size_t>(loudest * kFrames + 5)] - 2, 1e-6);
}

}  // namespace
}  // namespace fovea
