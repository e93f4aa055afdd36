#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "inspector/routes.h"

namespace fovea::inspector {
namespace {

// A WAV file of a tone that becomes higher.
std::string rising_tone(int samples) {
  std::string wav = "RIFF....WAVEfmt ";
  const auto put = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) wav += static_cast<char>(value >> 8 * i & 0xFF);
  };
  put(16, 4), put(1, 2), put(1, 2), put(16000, 4), put(32000, 4), put(2, 2), put(16, 2);
  wav += "data";
  put(static_cast<uint32_t>(2 * samples), 4);
  for (int i = 0; i < samples; ++i)
    put(static_cast<uint32_t>(static_cast<int>(8000 * std::sin(0.1 * i + 1e-5 * i * i))), 2);
  return wav;
}

TEST(SpeechRoute, GivesWordsAndWhereTheyComeFrom) {
  Routes routes({"tests/goldens/speech/model"});
  const Response response =
      routes.respond({"POST", "api/speech", {{"model", "0"}}, rising_tone(32000)});
  ASSERT_EQ(response.status, 200) << response.body;
  const nlohmann::json json = parse_json(response.body, "answer");
  EXPECT_EQ(json.at("seconds"), 2.0);
  EXPECT_EQ(json.at("frames"), 200);
  EXPECT_EQ(json.at("spectrogram").size(), 80u * 200u);
  ASSERT_FALSE(json.at("words").empty());
  EXPECT_EQ(json.at("positions"), 100);
  EXPECT_EQ(json.at("similarity").size(), json.at("words").size() * 100);
  for (const auto& word : json.at("words")) {
    EXPECT_LE(word.at("start").get<double>(), word.at("end").get<double>());
    EXPECT_LE(word.at("end").get<double>(), 2.0);
  }
}

TEST(SpeechRoute, RefusesWhatIsNoAudio) {
  Routes routes({"tests/goldens/speech/model"});
  const Response response = routes.respond({"POST", "api/speech", {{"model", "0"}}, "no audio"});
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("is not an audio file"), std::string::npos);
  Routes text({"apps/inspector/course_model"});
  const Response other = text.respond({"POST", "api/speech", {{"model", "0"}}, rising_tone(1000)});
  EXPECT_EQ(other.status, 400);
  EXPECT_NE(other.body.find("expected a speech model"), std::string::npos);
}

}  // namespace
}  // namespace fovea::inspector
