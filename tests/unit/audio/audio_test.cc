#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "audio/audio_format.h"
#include "audio/convert_audio.h"
#include "audio/log_mel.h"
#include "base/error.h"
#include "support/temporary_folder.h"

namespace fovea::media {
namespace {

std::vector<float> tone(double hertz, double rate, double seconds) {
  std::vector<float> samples;
  for (int64_t i = 0; i < static_cast<int64_t>(rate * seconds); ++i)
    samples.push_back(static_cast<float>(
        0.5 * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate)));
  return samples;
}

// Returns a reader of interleaved frames.
FrameReader reader_of(std::vector<float> frames, int64_t channels) {
  return [frames, channels, at = int64_t{0}](float* to, int64_t most) mutable {
    const int64_t count = std::min(most, std::ssize(frames) / channels - at);
    std::copy_n(frames.begin() + at * channels, count * channels, to);
    at += count;
    return count;
  };
}

std::vector<float> all_of(const AudioSource& audio) {
  std::vector<float> all, block(1000);
  while (const int64_t count = audio(block.data(), std::ssize(block)))
    all.insert(all.end(), block.begin(), block.begin() + count);
  return all;
}

// Writes a WAV file, whose lengths may lie.
std::string wav(int code, int channels, uint32_t rate, int bits, uint32_t length,
                const std::string& data) {
  std::string bytes = "RIFF\xFF\xFF\xFF\xFFWAVEfmt ";
  const auto put = [&](auto value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(uint32_t{16});
  put(static_cast<uint16_t>(code));
  put(static_cast<uint16_t>(channels));
  put(rate);
  put(static_cast<uint32_t>(rate * static_cast<uint32_t>(channels * bits / 8)));
  put(static_cast<uint16_t>(channels * bits / 8));
  put(static_cast<uint16_t>(bits));
  bytes += "data";
  put(length);
  return bytes + data;
}

std::string pcm16(const std::vector<float>& samples) {
  std::string bytes;
  for (const float sample : samples) {
    const auto value = static_cast<int16_t>(std::lround(sample * 32767));
    bytes.append(reinterpret_cast<const char*>(&value), 2);
  }
  return bytes;
}

ByteReader pieces_of(std::string bytes, int64_t piece) {
  return [bytes, piece, at = size_t{0}](char* to, int64_t most) mutable {
    const size_t count =
        std::min({static_cast<size_t>(most), static_cast<size_t>(piece), bytes.size() - at});
    std::memcpy(to, bytes.data() + at, count);
    at += count;
    return static_cast<int64_t>(count);
  };
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Audio, IsResampledFromAnyRate) {
  const std::vector<float> expected = tone(440, 16000, 1);
  for (const double rate : {8000.0, 11025.0, 16000.0, 44100.0, 48000.0, 192000.0}) {
    const auto found = all_of(converted("tone", rate, 1, reader_of(tone(440, rate, 1), 1)));
    ASSERT_NEAR(static_cast<double>(found.size()), 16000, 2) << rate;
    for (size_t i = 1000; i < 15000; ++i) ASSERT_NEAR(found[i], expected[i], 2e-3) << rate << i;
  }
}

TEST(Audio, IsTheMeanOfItsChannels) {
  const auto found = all_of(converted("stereo", 16000, 2, reader_of({1, 0, 0.5, -0.5, 0, 1}, 2)));
  EXPECT_EQ(found, (std::vector<float>{0.5, 0, 0.5}));
}

TEST(Audio, RefusesRatesChannelsAndSamplesThatNoDeviceHas) {
  const auto refusal = [](double rate, int64_t channels, float sample) {
    return message_of([&] { all_of(converted("x", rate, channels, reader_of({sample}, 1))); });
  };
  EXPECT_EQ(refusal(1, 1, 0), "x: has 1 samples per second; expected 1000 to 768000");
  EXPECT_EQ(refusal(1e7, 1, 0), "x: has 10000000 samples per second; expected 1000 to 768000");
  EXPECT_EQ(refusal(16000, 0, 0), "x: has 0 channels; expected 1 to 64");
  EXPECT_EQ(refusal(16000, 65, 0), "x: has 65 channels; expected 1 to 64");
  EXPECT_EQ(refusal(16000, 1, std::numeric_limits<float>::quiet_NaN()),
            "x: sample 0 is nan; expected finite numbers near [-1, 1]");
  EXPECT_EQ(refusal(16000, 1, std::numeric_limits<float>::infinity()),
            "x: sample 0 is inf; expected finite numbers near [-1, 1]");
}

TEST(AudioStream, IsTheFileWhateverItsHeaderSays) {
  const std::vector<float> samples = tone(300, 16000, 0.1);
  const std::string data = pcm16(samples);
  const auto expected = all_of(open_audio(
      std::make_shared<std::string>(wav(1, 1, 16000, 16, static_cast<uint32_t>(data.size()), data)),
      "file"));
  ASSERT_EQ(expected.size(), samples.size());
  for (const uint32_t length : {0u, 0x7FFFF000u, 0xFFFFFFFFu}) {
    const std::string file = wav(1, 1, 16000, 16, length, data);
    for (const int64_t piece : {int64_t{1}, int64_t{4097}})
      EXPECT_EQ(all_of(open_audio_stream("s", {}, pieces_of(file, piece))), expected);
    EXPECT_EQ(all_of(open_audio(std::make_shared<std::string>(file), "file")), expected) << length;
  }
  EXPECT_EQ(all_of(open_audio_stream("s", {}, pieces_of(data, 3))), expected);
}

// The bytes of a chunk after the samples are no samples.
TEST(AudioStream, EndsBeforeTheChunkAfterTheSamples) {
  const std::string data = pcm16(tone(300, 16000, 0.1)),
                    file = wav(1, 1, 16000, 16, static_cast<uint32_t>(data.size()), data) +
                           std::string("LIST\x04\0\0\0INFO", 12);
  const auto expected = all_of(open_audio(std::make_shared<std::string>(file), "file"));
  EXPECT_EQ(expected.size(), 1600u);
  EXPECT_EQ(all_of(open_audio_stream("s", {}, pieces_of(file, 100))), expected);
}

// A file in another format is decoded, as from a path; its bytes are not heard as samples.
TEST(AudioStream, DecodesWhatAFileHolds) {
  const std::vector<float> samples = tone(300, 16000, 0.1);
  std::string wide;  // 24 bits
  for (const float sample : samples) {
    const auto value = static_cast<int32_t>(std::lround(sample * 8388607));
    wide.append(reinterpret_cast<const char*>(&value), 3);
  }
  const std::string file = wav(1, 1, 16000, 24, static_cast<uint32_t>(wide.size()), wide);
  const auto found = all_of(open_audio_stream("s", {}, pieces_of(file, 100)));
  EXPECT_EQ(found, all_of(open_audio(std::make_shared<std::string>(file), "file")));
  ASSERT_EQ(found.size(), samples.size());
  EXPECT_NEAR(found[7], samples[7], 1e-6);
  const auto refusal = [](const std::string& bytes) {
    return message_of([&] { all_of(open_audio_stream("s", {}, pieces_of(bytes, 64))); });
  };
  EXPECT_NE(refusal("fLaC, but no more").find("s: is not an audio file"), std::string::npos);
  EXPECT_NE(refusal("OggS").find("s: is not an audio file"), std::string::npos);
}

// MP3 and AAC begin with bits that samples may have too, so two frames must follow each other.
TEST(AudioStream, TellsFramesOfMp3FromSamples) {
  std::string frame("\xFF\xFB\x90\x00", 4);  // MPEG-1, 128 kbit/s, 44.1 kHz: 417 bytes
  frame.resize(417);
  const auto begins = [](const std::string& bytes) {
    return begins_audio_file(
        [&](size_t count) { return std::string_view(bytes).substr(0, count); });
  };
  EXPECT_TRUE(begins(frame + frame));
  EXPECT_FALSE(begins(frame + std::string(417, '\0')));
  EXPECT_FALSE(begins(frame));
  std::string adts("\xFF\xF1\x50\x80\x02\x00", 6);  // 16 bytes
  adts.resize(16);
  EXPECT_TRUE(begins(adts + adts));
  EXPECT_FALSE(begins(adts + std::string(16, '\0')));
  EXPECT_FALSE(begins(pcm16(tone(300, 16000, 0.1))));
}

TEST(AudioStream, ReadsTheTypesOfSamples) {
  const auto first = [](SampleType type, const std::string& bytes) {
    return all_of(open_audio_stream("s", {type}, pieces_of(bytes, 64))).at(0);
  };
  EXPECT_EQ(first(SampleType::u8, "\xC0"), 0.5f);
  EXPECT_EQ(first(SampleType::s16, std::string("\x00\xC0", 2)), -0.5f);
  EXPECT_EQ(first(SampleType::s32, std::string("\x00\x00\x00\x40", 4)), 0.5f);
  EXPECT_EQ(first(SampleType::f32, std::string("\x00\x00\x00\x3F", 4)), 0.5f);
}

TEST(AudioStream, RefusesHeadersThatItCannotFollow) {
  const auto refusal = [](const std::string& bytes) {
    return message_of([&] { all_of(open_audio_stream("s", {}, pieces_of(bytes, 64))); });
  };
  EXPECT_EQ(refusal(wav(1, 1, 16000, 16, 0, "").substr(0, 30)),
            "s: the WAV stream ends within its header");
  EXPECT_EQ(refusal(wav(1, 1, 16000, 16, 0, "").substr(0, 36)),
            "s: the WAV stream ends before its samples; expected a chunk 'data'");
  EXPECT_EQ(refusal(wav(1, 0, 16000, 16, 0, "xx")), "s: has 0 channels; expected 1 to 64");
}

// Opening a FIFO without a writer took for ever.
TEST(AudioFile, RefusesFifosAndDevices) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "a.wav").c_str(), 0600), 0);
  EXPECT_NE(message_of([&] { open_audio(folder / "a.wav"); }).find("a.wav: is a FIFO; expected"),
            std::string::npos);
  EXPECT_NE(message_of([] { open_audio("/dev/zero"); }).find("/dev/zero: is a device"),
            std::string::npos);
}

TEST(AudioFile, RefusesOtherFilesByName) {
  const auto refusal = [](const std::string& bytes) {
    return message_of([&] { open_audio(std::make_shared<std::string>(bytes), "f"); });
  };
  EXPECT_NE(refusal(std::string("\0\0\0\x20", 4) + "ftypM4A ").find("MP4 (m4a, mp4, mov)"),
            std::string::npos);
  EXPECT_NE(refusal("\x1A\x45\xDF\xA3....").find("Matroska (webm, mkv)"), std::string::npos);
  EXPECT_NE(refusal("").find("f: is not an audio file that libsndfile reads"), std::string::npos);
  EXPECT_NE(refusal("hello").find("expected WAV, FLAC, Ogg, Opus or MP3"), std::string::npos);
}

// The frames do not depend on the pieces in which the samples arrive, and equal those of the whole
// waveform.
TEST(LogMelStream, EqualsTheSpectrogramOfTheWholeAudio) {
  const std::vector<float> samples = tone(523, 16000, 0.5);
  constexpr int64_t kBins = 20, kFrames = 50;
  std::vector<float> expected = log_mel(samples, kBins, kFrames);
  for (const int64_t piece : {int64_t{1}, int64_t{159}, int64_t{100'000}}) {
    std::vector<float> frames;
    LogMelStream stream(kBins, [&](const float* found, int64_t count) {
      frames.insert(frames.end(), found, found + count * kBins);
    });
    for (int64_t at = 0; at < std::ssize(samples); at += piece)
      stream.add(samples.data() + at, std::min(piece, std::ssize(samples) - at));
    stream.finish();
    ASSERT_EQ(std::ssize(frames), kBins * kFrames);
    scale_log_mel(frames, *std::max_element(frames.begin(), frames.end()));
    for (int64_t f = 0; f < kFrames; ++f)
      for (int64_t bin = 0; bin < kBins; ++bin)
        ASSERT_EQ(frames[static_cast<size_t>(f * kBins + bin)],
                  expected[static_cast<size_t>(bin * kFrames + f)]);
  }
}

}  // namespace
}  // namespace fovea::media
