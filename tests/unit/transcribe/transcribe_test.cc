#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "families/languages.h"
#include "fovea/infer/transcribe.h"
#include "transcribe/partial_pace.h"
#include "transcribe/segments.h"
#include "transcribe/time_rules.h"
#include "transcribe/voice.h"
#include "transcribe/window_decoder.h"
#include "transcribe/word_times.h"

namespace fovea::infer {
namespace {

using Ids = std::vector<int32_t>;

// Tokens 0 to 9 are text, 10 ends it, 11 starts it, 13 means no times; 14 to 24 are times.
SpeechTokens tokens_of_test() {
  SpeechTokens tokens;
  tokens.start = 11;
  tokens.end = 10;
  tokens.no_timestamps = 13;
  return tokens;
}
constexpr int64_t kVocabulary = 25;

// Returns the tokens that may follow `written` if all text has the logit `text`.
Ids allowed_after(const Ids& written, float text = 5, const SpeechTokens& t = tokens_of_test()) {
  std::vector<float> logits(kVocabulary, 0.0f);
  std::fill(logits.begin(), logits.begin() + 11, text);
  restrain_times(t, written, logits.data(), kVocabulary);
  Ids allowed;
  for (int32_t id = 0; id < kVocabulary; ++id)
    if (logits[static_cast<size_t>(id)] > -std::numeric_limits<float>::infinity())
      allowed.push_back(id);
  return allowed;
}

Ids range(int32_t first, int32_t last) {
  Ids ids;
  for (int32_t id = first; id <= last; ++id) ids.push_back(id);
  return ids;
}

TEST(TimeRules, ATextBeginsWithATime) {
  EXPECT_EQ(allowed_after({}), range(14, 24));
  SpeechTokens early = tokens_of_test();
  early.latest_first_time = 2;
  EXPECT_EQ(allowed_after({}, 5, early), range(14, 16));
}

TEST(TimeRules, AfterTheFirstTimeComesText) { EXPECT_EQ(allowed_after({14}), range(0, 12)); }

TEST(TimeRules, ATimeAfterTextIsFollowedByATimeThatIsNotEarlierOrByTheEnd) {
  Ids expected = range(10, 12);
  for (const int32_t id : range(17, 24)) expected.push_back(id);
  EXPECT_EQ(allowed_after({14, 3, 17}), expected);
}

TEST(TimeRules, AfterAPairComesTextAndLaterTimesIncrease) {
  EXPECT_EQ(allowed_after({14, 3, 17, 17}), range(0, 12));
  Ids expected = range(0, 12);
  for (const int32_t id : range(18, 24)) expected.push_back(id);
  EXPECT_EQ(allowed_after({14, 3, 17, 17, 4}), expected);
}

// Eleven times with the logit 0 are together as probable as one token with log(11) = 2.4.
TEST(TimeRules, TimesThatAreTogetherMoreProbableThanAnyTextAreForced) {
  EXPECT_EQ(allowed_after({14, 3}, 2.5f), [] {
    Ids all = range(0, 12);
    for (const int32_t id : range(15, 24)) all.push_back(id);
    return all;
  }());
  EXPECT_EQ(allowed_after({14, 3}, 2.2f), range(15, 24));
}

TEST(Divide, EndsSegmentsAtPairsOfTimes) {
  const SpeechTokens t = tokens_of_test();
  // A single time at the end: no speech follows in the window.
  DividedWindow found = divide(t, {14, 1, 16, 16, 2, 3, 20}, 40);
  ASSERT_EQ(found.segments.size(), 2u);
  EXPECT_EQ(found.segments[0].tokens, (Ids{14, 1, 16}));
  EXPECT_EQ(found.segments[1].tokens, (Ids{16, 2, 3, 20}));
  EXPECT_EQ(found.segments[1].start, 2);
  EXPECT_EQ(found.segments[1].end, 6);
  EXPECT_EQ(found.next, 40);
  // A pair at the end, or text after the last pair: the next window begins at the pair.
  for (const Ids& tail : {Ids{}, Ids{4, 5}}) {
    Ids ids = {14, 1, 16, 16, 2, 20, 20};
    ids.insert(ids.end(), tail.begin(), tail.end());
    found = divide(t, ids, 40);
    ASSERT_EQ(found.segments.size(), 2u);
    EXPECT_EQ(found.segments[1].tokens, (Ids{16, 2, 20, 20}));
    EXPECT_EQ(found.next, 12);
  }
}

TEST(Divide, ATextWithoutAPairIsOneSegment) {
  const SpeechTokens t = tokens_of_test();
  DividedWindow found = divide(t, {14, 1, 2}, 40);
  ASSERT_EQ(found.segments.size(), 1u);
  EXPECT_EQ(found.segments[0].end, 20);
  EXPECT_EQ(found.next, 40);
  EXPECT_EQ(divide(t, {14, 1, 18}, 40).segments[0].end, 4);
  EXPECT_EQ(divide(t, {}, 40).segments[0].tokens, Ids{});
}

TEST(Voice, IsFoundAboveTheBackground) {
  std::vector<float> levels(300, -5.0f);
  std::fill(levels.begin() + 100, levels.begin() + 150, -1.0f);
  std::fill(levels.begin() + 180, levels.begin() + 200, -1.5f);  // after a pause of 0.3 s
  std::fill(levels.begin() + 270, levels.begin() + 275, -1.0f);  // a click
  EXPECT_EQ(voice_in(levels), (std::vector<FrameRange>{{80, 220}}));
  EXPECT_TRUE(voice_in(std::vector<float>(100, -10.0f)).empty());  // digital silence
  EXPECT_TRUE(voice_in({}).empty());
  EXPECT_EQ(voice_in(std::vector<float>(100, 0.0f)), (std::vector<FrameRange>{{0, 100}}));
  levels.insert(levels.begin(), 100'000, -5.0f);
  EXPECT_EQ(recent_voice(levels), (std::vector<FrameRange>{{100'080, 100'220}}));
}

TEST(Voice, IsPackedIntoWindows) {
  EXPECT_EQ(packed_into({{0, 40}, {60, 90}, {95, 150}}, 100),
            (std::vector<FrameRange>{{0, 90}, {95, 150}}));
  EXPECT_EQ(packed_into({{10, 260}}, 100),
            (std::vector<FrameRange>{{10, 110}, {110, 210}, {210, 260}}));
}

TEST(PartialPace, WaitsForVoiceAndForNewText) {
  std::vector<float> levels(200, -10.0f);
  const auto add = [&](int64_t frames, float level) {
    levels.insert(levels.end(), static_cast<size_t>(frames), level);
  };
  PartialPace pace;
  EXPECT_FALSE(pace.is_due(levels, 0));  // silence
  add(15, -1);
  EXPECT_TRUE(pace.is_due(levels, 0));  // voice begins: at once
  pace.reported(std::ssize(levels), 0, true);
  EXPECT_FALSE(pace.is_due(levels, 0));
  add(40, -1);
  EXPECT_FALSE(pace.is_due(levels, 0));
  add(15, -1);
  EXPECT_TRUE(pace.is_due(levels, 0));
  pace.reported(std::ssize(levels), 0, false);
  add(60, -1);
  EXPECT_FALSE(pace.is_due(levels, 0));  // the text remained the same
  add(60, -1);
  EXPECT_TRUE(pace.is_due(levels, 0));
  EXPECT_FALSE(pace.is_due(levels, std::ssize(levels)));  // a window begins after all of it
  pace.reported(std::ssize(levels), 1, true);
  add(150, -1);
  EXPECT_FALSE(pace.is_due(levels, 0));  // results take long
  add(100, -1);
  EXPECT_TRUE(pace.is_due(levels, 0));
  pace.reported(std::ssize(levels), 0, true);
  add(300, -10);
  EXPECT_TRUE(pace.is_due(levels, 0));  // the voice ended in silence
  pace.reported(std::ssize(levels), 0, true);
  add(300, -10);
  EXPECT_FALSE(pace.is_due(levels, 0));
}

TEST(WarpPath, FollowsTheCheapestElements) {
  // The second row is cheap from the third column.
  const WarpPath path = warp_path({0, 0, 5, 5, 5, 5, 0, 0}, 2, 4);
  EXPECT_EQ(path.rows, (std::vector<int64_t>{0, 0, 1, 1}));
  EXPECT_EQ(path.columns, (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(MedianFilter, RemovesOutliersAndMirrorsTheEnds) {
  std::vector<float> x = {1, 9, 1, 1, 5, 6, 7, 8};
  median_filter(x, 8, 3);
  EXPECT_EQ(x, (std::vector<float>{9, 1, 1, 1, 5, 6, 7, 7}));
}

TEST(CompressionRatio, IsLargeForTextThatRepeatsItself) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += " and so";
  EXPECT_GT(compression_ratio_of(text), 10);
  EXPECT_LT(compression_ratio_of("The quick brown fox jumps."), 1.1);
  EXPECT_EQ(compression_ratio_of(""), 0);
}

TEST(Languages, HaveCodesAndNames) {
  EXPECT_EQ(model::language_code("German"), "de");
  EXPECT_EQ(model::language_code("DE"), "de");
  EXPECT_EQ(model::language_code("castilian"), "es");
  EXPECT_EQ(model::language_code("klingon"), std::nullopt);
  EXPECT_EQ(model::language_name("ja"), "japanese");
}

Transcript sample() {
  Transcript transcript;
  transcript.text = " One. Two --> three.";
  transcript.language = "en";
  transcript.segments.resize(2);
  transcript.segments[0].start = 0.5;
  transcript.segments[0].end = 2.04;
  transcript.segments[0].text = " One.";
  transcript.segments[0].tokens = {1};
  transcript.segments[1].start = 3601;
  transcript.segments[1].end = 3602.5;
  transcript.segments[1].text = " Two --> three.";
  transcript.segments[1].words = {{" Two", 3601, 3601.5, 0.75}};
  return transcript;
}

TEST(TranscriptFormats, AreThoseOfSubtitlesAndTables) {
  EXPECT_EQ(formatted(sample(), TranscriptFormat::text), "One.\nTwo --> three.\n");
  EXPECT_EQ(formatted(sample(), TranscriptFormat::srt),
            "1\n00:00:00,500 --> 00:00:02,040\nOne.\n\n"
            "2\n01:00:01,000 --> 01:00:02,500\nTwo -> three.\n\n");
  EXPECT_EQ(formatted(sample(), TranscriptFormat::vtt),
            "WEBVTT\n\n00:00.500 --> 00:02.040\nOne.\n\n"
            "01:00:01.000 --> 01:00:02.500\nTwo -> three.\n\n");
  EXPECT_EQ(formatted(sample(), TranscriptFormat::tsv),
            "start\tend\ttext\n500\t2040\tOne.\n3601000\t3602500\tTwo --> three.\n");
  const std::string json = formatted(sample(), TranscriptFormat::json);
  EXPECT_NE(
      json.find(R"("words":[{"word":" Two","start":3601.0,"end":3601.5,"probability":0.75}])"),
      std::string::npos)
      << json;
}

}  // namespace
}  // namespace fovea::infer
