#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fovea/core/options.h"
#include "fovea/media/audio.h"
#include "fovea/model/model.h"

namespace fovea::infer {

// How speech is converted to text (Radford et al. 2022, section 4.5). The model reads windows, of
// 30 s in all published models. A window is decoded at the first of `temperatures`, and again at
// the next one while its text repeats itself or is improbable.
struct TranscribeOptions {
  // The language of the speech: a code such as "de", or an English name. Empty = the most likely
  // one in the first window.
  std::string language;
  bool translate = false;   // translate to English
  bool timestamps = true;   // predict the times of segments, by which windows follow one another
  bool word_times = false;  // also compute the times of words, from cross-attention
  int64_t beams = 5;        // of the beam search at temperature 0; 1 = greedy
  // Hypotheses are ranked by log-probability / length ^ length_penalty.
  float length_penalty = 1;
  int64_t samples = 5;  // texts that are sampled at other temperatures; the most likely one counts
  std::vector<float> temperatures = {0, 0.2f, 0.4f, 0.6f, 0.8f, 1};
  // Decode again if the text, compressed by zlib, shrinks by more than this factor; 0 = off.
  float compression_ratio = 2.4f;
  // Decode again if the mean log-probability of the tokens is lower; 0 = off.
  float logprob = -1;
  // A window is silent if its probability of silence is higher and its log-probability lower than
  // the limits; 1 = off.
  float no_speech = 0.6f;
  bool previous_text = true;  // a window follows the text of the windows before it
  std::string prompt;    // text that precedes the first window, or each one without previous_text
  std::string hotwords;  // words that precede each window, such as names
  std::vector<int32_t> suppress;  // tokens that are never generated, besides those of the model
  // Do not decode audio without voice: frames whose loudest band is not 10 dB above the background.
  bool voice_only = false;
  // Decode this number of windows together: faster, but each without the text before it.
  int64_t windows = 1;
  int64_t max_tokens = 0;  // maximum tokens per window; 0 = as many as the model's context allows
  uint64_t seed = 0;       // of temperatures above 0
};
void visit(TranscribeOptions& options, OptionVisitor& visitor);

struct TranscribedWord {
  std::string word;  // with the space before it and its punctuation
  double start = 0, end = 0;
  double probability = 0;  // mean of its tokens
};

struct TranscribedSegment {
  int64_t seek = 0;           // where its window begins, in frames of 10 ms
  double start = 0, end = 0;  // seconds
  std::string text;
  std::vector<int32_t> tokens;  // with those of times, without the end token
  // Of its window: see TranscribeOptions.
  double temperature = 0, logprob = 0, compression_ratio = 0, no_speech = 0;
  std::vector<TranscribedWord> words;  // if requested
};

struct Transcript {
  std::string text = {};
  std::string language = {};  // code
  double seconds = 0;         // duration of the audio
  bool translated = false;
  std::vector<TranscribedSegment> segments = {};
};

// What transcribe() reports on the way. Functions that are not set are not called; all calls come
// from the caller's thread. Arguments are valid during the call only.
struct TranscribeEvents {
  // A further segment. Return false to end the transcription after it.
  std::function<bool(const TranscribedSegment&)> segment;
  // Seconds that are transcribed, and the duration of the audio.
  std::function<void(double done, double all)> progress;
  // Set for live audio: the text of the audio since the last segment, decoded greedily about twice
  // per second of audio. The segments after it may differ. The transcription begins while the audio
  // arrives. A spectrogram is relative to the loudest frame, so if a later one is louder, the audio
  // is transcribed again at its end, after `restart`: the result is the same as for a file.
  std::function<void(const std::string& text)> partial;
  std::function<void()> restart;
};

// Transcribes speech with an encoder-decoder for audio. Memory use does not depend on the duration:
// the spectrogram is in a temporary file. Throws InvalidArgument if the model is of another kind,
// if an option is out of range, or if the language is unknown.
Transcript transcribe(const model::Model& model, const media::AudioSource& audio,
                      const TranscribeOptions& options = {}, const TranscribeEvents& events = {});

// The first window of a recording, its words, and where they come from.
struct WordsInAudio {
  std::string text, language;
  double seconds = 0;              // of audio in the window
  int64_t bins = 0, frames = 0;    // of the spectrogram; a frame is 10 ms
  std::vector<float> spectrogram;  // [bins, frames], the lowest band first, about -1 to 1
  std::vector<TranscribedWord> words;
  // The similarity of each word and each 20 ms of audio: weights of cross-attention, normalised
  // over the tokens and filtered, from which the times of words follow. [words, positions]
  int64_t positions = 0;
  std::vector<float> similarity;
};
// Transcribes the first window of a recording greedily. `language`: as in TranscribeOptions. Throws
// the errors of transcribe().
WordsInAudio words_in_audio(const model::Model& model, const media::AudioSource& audio,
                            const std::string& language = "");

// The formats of transcripts. json: the fields of the reference implementation (Radford et al.
// 2022).
enum class TranscriptFormat { text, srt, vtt, tsv, json };
const std::vector<std::string>& transcript_formats();  // their names
std::string formatted(const Transcript& transcript, TranscriptFormat format);
// Returns the object of a segment in the format json, without its words.
std::string segment_json(const TranscribedSegment& segment, int64_t id);

}  // namespace fovea::infer
