#include "transcribe/transcription.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/fields.h"
#include "families/languages.h"
#include "transcribe/partial_pace.h"
#include "transcribe/segments.h"
#include "transcribe/word_times.h"

namespace fovea::infer {
namespace {

constexpr double kStep = 0.02;                      // seconds between the times that tokens express
constexpr int64_t kBlock = media::kSampleRate / 4;  // samples that are read at a time

}  // namespace

Transcription::Transcription(const Generator& generator, const SpeechTokens& tokens,
                             const TranscribeOptions& options, const TranscribeEvents& events,
                             uint64_t cache_bytes)
    : generator_(generator),
      tokens_(tokens),
      options_(options),
      events_(events),
      decoder_(generator, tokens, options, cache_bytes),
      window_(2 * generator.model.spec.input.frames),
      spectrogram_(generator.model.spec.input.bins, window_) {
  const auto ids = [&](const std::string& text) {
    return text.empty() ? std::vector<int32_t>{} : generator.tokenizer->encode(" " + text);
  };
  prompt_ = ids(options.prompt);
  hotwords_ = ids(options.hotwords);
  check_field(tokens.before_start.has_value() || (prompt_.empty() && hotwords_.empty()), "prompt",
              "the model has no token for the text before a window; expected no text");
  restart();
}

void Transcription::restart() {
  start_.clear();
  written_ = prompt_;
  decoded_.clear();
  follows_ = options_.previous_text;
  seek_ = 0;
  last_end_ = 0;
  stopped_ = false;
  transcript_ = {};
  transcript_.translated = options_.translate;
}

Transcript Transcription::run(const media::AudioSource& audio) {
  if (live()) {
    read_live(audio);
  } else {
    read_all(audio);
  }
  if (!stopped_) decode_rest();
  for (const TranscribedSegment& segment : transcript_.segments) transcript_.text += segment.text;
  transcript_.seconds = spectrogram_.seconds();
  return std::move(transcript_);
}

void Transcription::read_all(const media::AudioSource& audio) {
  std::vector<float> block(kBlock);
  while (const int64_t count = audio(block.data(), kBlock)) spectrogram_.add(block.data(), count);
  spectrogram_.finish();
}

// Decodes windows as soon as they are complete. At the end of the audio, they are decoded again
// unless they are those of the whole recording.
void Transcription::read_live(const media::AudioSource& audio) {
  std::vector<float> block(kBlock);
  PartialPace pace;
  while (const int64_t count = audio(block.data(), kBlock)) {
    spectrogram_.add(block.data(), count);
    if (options_.voice_only) voice_ = recent_voice(spectrogram_.levels());
    while (!stopped_ && is_complete()) decode_next(seek_ + window_);
    if (stopped_) return;
    if (!pace.is_due(spectrogram_.levels(), seek_)) continue;
    const auto start = std::chrono::steady_clock::now();
    const bool changed = report_partial();
    pace.reported(spectrogram_.frames(),
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                  changed);
  }
  spectrogram_.finish();
  if (options_.voice_only) voice_ = voice_in(spectrogram_.levels());
  if (is_final()) return;
  restart();
  if (events_.restart) events_.restart();
}

// Whether a window has arrived. Silence before it is skipped.
bool Transcription::is_complete() {
  const int64_t frames = spectrogram_.frames();
  return skip_silence(std::max(seek_, frames - kVoiceOnset)) && frames - seek_ >= window_;
}

// Whether the decoded windows are those of the whole recording: values of a spectrogram are
// relative to its loudest one, and what is voice depends on all levels. Moves to the end of these
// windows.
bool Transcription::is_final() {
  seek_ = 0;
  if (decoded_.empty()) return true;
  for (const FrameRange& window : decoded_) {
    if (!skip_silence(spectrogram_.frames()) || seek_ != window.begin) return false;
    seek_ = window.end;
  }
  return spectrogram_.peak() == peak_ && options_.windows == 1;
}

void Transcription::decode_rest() {
  if (spectrogram_.audio_frames() == 0) return;
  if (options_.voice_only) voice_ = voice_in(spectrogram_.levels());
  if (options_.windows > 1) return decode_together();
  const int64_t end = spectrogram_.frames();
  while (seek_ < end && !stopped_ && skip_silence(end)) decode_next(end);
}

// Moves to the next frame with voice; returns false if there is none.
bool Transcription::skip_silence(int64_t end) {
  if (!voice_) return true;
  const auto next = std::find_if(voice_->begin(), voice_->end(),
                                 [&](const FrameRange& range) { return range.end > seek_; });
  if (next == voice_->end()) {
    seek_ = end;
    return false;
  }
  seek_ = std::max(seek_, next->begin);
  return true;
}

// Decodes windows of voice, or of the audio, independently of one another.
void Transcription::decode_together() {
  const int64_t end = spectrogram_.frames();
  const std::vector<FrameRange> ranges =
      packed_into(voice_.value_or(std::vector<FrameRange>{{0, end}}), window_);
  follows_ = false;
  for (size_t first = 0; first < ranges.size() && !stopped_;) {
    const size_t last = std::min(ranges.size(), first + static_cast<size_t>(options_.windows));
    std::vector<std::vector<float>> spectrograms;
    for (size_t i = first; i < last; ++i)
      spectrograms.push_back(spectrogram_.window_at(ranges[i].begin));
    const std::vector<EncodedAudio> encoded = decoder_.encode(spectrograms);
    std::vector<SpeechWindow> windows;
    for (const EncodedAudio& audio : encoded) {
      settle_language(audio);
      windows.push_back(window_of(audio));
    }
    const std::vector<WindowText> texts = decoder_.decode(windows);
    for (size_t i = first; i < last && !stopped_; ++i) {
      int64_t next = 0;
      const FrameRange range = ranges[i];
      add(texts[i - first], encoded[i - first].memory, range.begin, range.end - range.begin, next);
      seek_ = range.end;
      report_progress();
    }
    first = last;
  }
}

// Decodes the window at seek_ of a recording of `end` frames; moves seek_ to the next one.
void Transcription::decode_next(int64_t end) {
  const int64_t frames = std::min(window_, end - seek_);
  std::vector<float> spectrogram = spectrogram_.window_at(seek_);
  if (decoded_.empty()) peak_ = spectrogram_.peak();  // it never falls
  if (!last_ || last_->spectrogram != spectrogram ||
      last_->window.beginning != window_of({}).beginning) {
    const EncodedAudio audio = decoder_.encode({spectrogram})[0];
    settle_language(audio);
    const WindowText text = decoder_.decode({window_of(audio)})[0];
    last_ = {std::move(spectrogram), window_of({audio.memory, nullptr}), text};
  }
  const WindowText& text = last_->text;
  int64_t next = frames;
  // Text that was sampled at a high temperature is a bad guide for the next window.
  constexpr double kHot = 0.5;
  follows_ = options_.previous_text && text.temperature < kHot;
  add(text, last_->window.audio.memory, seek_, frames, next);
  decoded_.push_back({seek_, seek_ + (next > 0 ? next : frames)});
  seek_ = decoded_.back().end;
  report_progress();
}

// Returns whether the partial result differs from the last one.
bool Transcription::report_partial() {
  const EncodedAudio audio = decoder_.encode({spectrogram_.window_at(seek_)})[0];
  const bool known = !start_.empty();
  settle_language(audio);
  const std::vector<int32_t> tokens = decoder_.decode_greedily(window_of(audio));
  if (!known) start_.clear();  // the language is that of the first whole window
  const std::string text = speech_text(*generator_.tokenizer, tokens_, tokens);
  const bool changed = text != partial_;
  partial_ = text;
  events_.partial(text);
  return changed;
}

void Transcription::settle_language(const EncodedAudio& audio) {
  if (!start_.empty()) return;
  start_ = {tokens_.start};
  if (tokens_.multilingual()) {
    const int32_t language = options_.language.empty()
                                 ? decoder_.detect_language(audio)
                                 : tokens_.languages.at(*model::language_code(options_.language));
    start_.push_back(language);
    const int32_t task = options_.translate ? tokens_.translate : tokens_.transcribe;
    if (task >= 0) start_.push_back(task);
    transcript_.language = tokens_.language_of(language);
  } else {
    transcript_.language = "en";
  }
}

// Returns the tokens of earlier text for the next window: at most half of the context.
std::vector<int32_t> Transcription::text_before() const {
  const std::vector<int32_t>& text = follows_ ? written_ : prompt_;
  if (text.empty() && hotwords_.empty()) return {};
  const auto most = static_cast<size_t>(generator_.model.spec.context / 2 - 1);
  if (!tokens_.before_start) return {};
  std::vector<int32_t> before = {*tokens_.before_start};
  before.insert(before.end(), hotwords_.begin(),
                hotwords_.begin() + std::ssize(hotwords_) -
                    std::max<int64_t>(0, std::ssize(hotwords_) - static_cast<int64_t>(most)));
  const size_t room = most - (before.size() - 1);
  before.insert(before.end(), text.end() - static_cast<std::ptrdiff_t>(std::min(room, text.size())),
                text.end());
  return before;
}

SpeechWindow Transcription::window_of(const EncodedAudio& audio) const {
  SpeechWindow window{audio, text_before(), 0};
  window.start = window.beginning.size();
  window.beginning.insert(window.beginning.end(), start_.begin(), start_.end());
  if (!options_.timestamps) window.beginning.push_back(tokens_.no_timestamps);
  return window;
}

// Adds the segments of a window to the transcript. `next`: frames to the next window.
void Transcription::add(const WindowText& text, const Tensor& memory, int64_t seek, int64_t frames,
                        int64_t& next) {
  if (text.silent) return;
  const DividedWindow divided = divide(tokens_, text.tokens, frames);
  next = divided.next;
  std::vector<TranscribedSegment> segments;
  for (const TokenSegment& part : divided.segments) {
    TranscribedSegment segment;
    segment.seek = seek;
    segment.start = media::seconds_of(seek) + static_cast<double>(part.start) * kStep;
    segment.end = media::seconds_of(seek) + static_cast<double>(part.end) * kStep;
    segment.tokens = part.tokens;
    segment.text = speech_text(*generator_.tokenizer, tokens_, part.tokens);
    segment.temperature = text.temperature;
    segment.logprob = text.logprob;
    segment.compression_ratio = text.compression_ratio;
    segment.no_speech = text.no_speech;
    segments.push_back(std::move(segment));
    // Of two times at the end, one precedes the next window.
    const bool pair = part.tokens.size() > 2 && tokens_.is_time(part.tokens.end()[-2]);
    written_.insert(written_.end(), part.tokens.begin(), part.tokens.end() - (pair ? 1 : 0));
  }
  const auto keep = static_cast<std::ptrdiff_t>(generator_.model.spec.context);
  if (std::ssize(written_) > 2 * keep) written_.erase(written_.begin(), written_.end() - keep);
  if (options_.word_times) {
    const int64_t audio = std::clamp<int64_t>(spectrogram_.audio_frames() - seek, 0, frames);
    add_word_times({generator_, tokens_, memory, start_, transcript_.language, audio, last_end_},
                   segments);
    for (const TranscribedSegment& segment : segments)
      if (!segment.words.empty()) last_end_ = segment.words.back().end;
  }
  for (TranscribedSegment& segment : segments) {
    if (events_.segment && !stopped_) stopped_ = !events_.segment(segment);
    transcript_.segments.push_back(std::move(segment));
  }
}

void Transcription::report_progress() const {
  const double all = spectrogram_.seconds();
  if (events_.progress) events_.progress(std::min(media::seconds_of(seek_), all), all);
}

}  // namespace fovea::infer
