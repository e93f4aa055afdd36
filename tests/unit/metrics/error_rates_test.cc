#include "metrics/error_rates.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace fovea::infer {
namespace {

// Made by tools/goldens/make_speech_training.py, with jiwer and openai-whisper's basic normalizer.
TEST(ErrorRates, AreThoseOfJiwer) {
  const nlohmann::json golden = read_json("tests/goldens/speech/training.json");
  ErrorRates rates;
  for (size_t i = 0; i < golden.at("texts").size(); ++i) {
    const auto& pair = golden.at("texts")[i];
    EXPECT_EQ(normalised_transcript(pair[0].get<std::string>()),
              golden.at("normalised")[i].get<std::string>());
    rates.add(pair[0].get<std::string>(), pair[1].get<std::string>());
  }
  EXPECT_NEAR(rates.words(), golden.at("wer").get<double>(), 1e-12);
  EXPECT_NEAR(rates.characters(), golden.at("cer").get<double>(), 1e-12);
}

TEST(ErrorRates, CountInsertionsOfEmptyReferences) {
  ErrorRates rates;
  EXPECT_EQ(rates.words(), 0);
  rates.add("one two", "");
  EXPECT_EQ(rates.words(), 1);
  rates.add("a b", "a b");
  EXPECT_EQ(rates.words(), 1);  // two insertions, two words
}

}  // namespace
}  // namespace fovea::infer
