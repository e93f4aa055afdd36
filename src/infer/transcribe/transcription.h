#pragma once

#include <optional>
#include <string>
#include <vector>

#include "transcribe/spectrogram_file.h"
#include "transcribe/voice.h"
#include "transcribe/window_decoder.h"

namespace fovea::infer {

// A window with its text.
struct DecodedWindow {
  std::vector<float> spectrogram;
  SpeechWindow window;
  WindowText text;
};

// The transcription of one recording: decodes its windows one after another or several at a time.
class Transcription {
 public:
  // The arguments must outlive it.
  Transcription(const Generator& generator, const SpeechTokens& tokens,
                const TranscribeOptions& options, const TranscribeEvents& events,
                uint64_t cache_bytes);

  Transcript run(const media::AudioSource& audio);

 private:
  bool live() const { return static_cast<bool>(events_.partial); }
  void read_all(const media::AudioSource& audio);
  void read_live(const media::AudioSource& audio);
  void restart();
  void decode_rest();
  void decode_together();
  bool skip_silence(int64_t end);
  void decode_next(int64_t end);
  bool is_complete();
  bool is_final();
  bool report_partial();
  void settle_language(const EncodedAudio& audio);
  SpeechWindow window_of(const EncodedAudio& audio) const;
  std::vector<int32_t> text_before() const;
  void add(const WindowText& text, const Tensor& memory, int64_t seek, int64_t frames,
           int64_t& next);
  void report_progress() const;

  const Generator& generator_;
  const SpeechTokens& tokens_;
  const TranscribeOptions& options_;
  const TranscribeEvents& events_;
  WindowDecoder decoder_;
  int64_t window_;  // frames
  SpectrogramFile spectrogram_;
  std::vector<int32_t> start_;  // start, language, task; empty: not known yet
  std::vector<int32_t> prompt_, hotwords_;
  std::vector<int32_t> written_;     // tokens of all segments, which may precede a window
  bool follows_ = true;              // the next window follows written_
  int64_t seek_ = 0;                 // frame at which the next window begins
  double last_end_ = 0;              // of the last word
  float peak_ = 0;                   // of the spectrogram when the first window was decoded
  std::vector<FrameRange> decoded_;  // windows, each up to the next one
  std::optional<std::vector<FrameRange>> voice_;  // of the audio
  std::optional<DecodedWindow> last_;             // a window like it has its text
  std::string partial_;                           // the last partial result
  bool stopped_ = false;
  Transcript transcript_;
};

}  // namespace fovea::infer
