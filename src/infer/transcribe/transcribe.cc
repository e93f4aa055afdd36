#include "fovea/infer/transcribe.h"

#include <algorithm>

#include "audio/convert_audio.h"
#include "audio/log_mel.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "base/machine.h"
#include "families/languages.h"
#include "open/model_parts.h"
#include "transcribe/transcription.h"
#include "transcribe/window_decoder.h"
#include "transcribe/word_times.h"

namespace fovea::infer {
namespace {

void check_options(const TranscribeOptions& o, const SpeechTokens& tokens,
                   const model::Spec& spec) {
  check_fields(o);
  check_field(!o.temperatures.empty(), "temperatures", "none; expected at least one");
  check_field(!o.word_times || o.timestamps, "word_times",
              "requires `timestamps`; expected times of segments too");
  check_field(o.max_tokens < spec.context, "max_tokens", "{}; expected less than {}, the context",
              o.max_tokens, spec.context);
  for (const int32_t id : o.suppress)
    check_field(id < spec.vocabulary, "suppress", "token id {}; expected 0 to {}", id,
                spec.vocabulary - 1);
  check_field(!o.translate || tokens.translate >= 0, "translate",
              "the model transcribes English only; expected a multilingual model");
  if (o.language.empty()) return;
  const auto code = model::language_code(o.language);
  check_field(code.has_value(), "language",
              "'{}' is unknown; expected a code such as de, or an English name such as german",
              o.language);
  check_field(tokens.multilingual() || code == "en", "language",
              "{}; expected en, since the model knows English only", *code);
  check_field(!tokens.multilingual() || tokens.languages.contains(*code), "language",
              "{}; expected one of the model's {} languages", *code, tokens.languages.size());
}

Generator generator_of(const model::Model& model) {
  const model::ModelParts& parts = model::parts_of(model);
  check(model.has_tokenizer(), "transcribe: the model has no tokenizer; expected a model with one");
  return {parts.transformer, &*parts.target_tokenizer, rules_of(parts.origin, parts.end_ids),
          DType::f32, parts.cache};
}

// `language`: a valid one, or empty.
WordsInAudio words_of_window(const Generator& generator, const SpeechTokens& tokens,
                             const std::string& language, const media::AudioSource& audio) {
  const model::InputSpec& input = generator.model.spec.input;
  const int64_t frames = 2 * input.frames;
  const std::vector<float> samples = media::first_samples(audio, frames * media::kHop);
  const std::vector<float> spectrogram = media::log_mel(samples, input.bins, frames);
  TranscribeOptions options;
  options.timestamps = false;
  WindowDecoder decoder(generator, tokens, options, available_memory() / 2);
  const EncodedAudio heard = decoder.encode({spectrogram})[0];
  WordsInAudio found;
  found.seconds =
      static_cast<double>(std::ssize(samples)) / static_cast<double>(media::kSampleRate);
  found.bins = input.bins;
  found.frames = std::ssize(samples) / media::kHop;
  for (int64_t bin = 0; bin < input.bins; ++bin) {
    const auto row = spectrogram.begin() + bin * frames;
    found.spectrogram.insert(found.spectrogram.end(), row, row + found.frames);
  }
  std::vector<int32_t> start = {tokens.start};
  found.language = "en";
  if (tokens.multilingual()) {
    start.push_back(language.empty() ? decoder.detect_language(heard)
                                     : tokens.languages.at(*model::language_code(language)));
    found.language = tokens.language_of(start.back());
    if (tokens.transcribe >= 0) start.push_back(tokens.transcribe);
  }
  SpeechWindow window{heard, start, 0};
  window.beginning.push_back(tokens.no_timestamps);
  std::vector<int32_t> text;
  for (const int32_t id : decoder.decode_greedily(window))
    if (id < tokens.end && id < generator.tokenizer->size()) text.push_back(id);
  // Aligning reads the text with the beginning, the token without timestamps, and the end.
  const auto context = static_cast<size_t>(generator.model.spec.context);
  text.resize(std::min(text.size(), context - std::min(context, start.size() + 2)));
  found.text = speech_text(*generator.tokenizer, tokens, text);
  const WordTimeInput input_of_words{generator,    tokens, heard.memory, start, found.language,
                                     found.frames, 0};
  for (TimedWord& word : align(input_of_words, text)) {
    found.positions = std::ssize(word.similarity);
    found.similarity.insert(found.similarity.end(), word.similarity.begin(), word.similarity.end());
    found.words.push_back({word.text, word.start, word.end, word.probability});
  }
  return found;
}

}  // namespace

WordsInAudio words_in_audio(const model::Model& model, const media::AudioSource& audio,
                            const std::string& language) {
  const FloatMode mode;
  const model::ModelParts& parts = model::parts_of(model);
  const Generator generator = generator_of(model);
  const SpeechTokens tokens =
      speech_tokens(parts.origin, model.spec(), *generator.tokenizer, parts.end_ids);
  TranscribeOptions options;
  options.language = language;
  check_options(options, tokens, model.spec());
  return words_of_window(generator, tokens, language, audio);
}

Transcript transcribe(const model::Model& model, const media::AudioSource& audio,
                      const TranscribeOptions& options, const TranscribeEvents& events) {
  const FloatMode mode;
  const model::ModelParts& parts = model::parts_of(model);
  const Generator generator = generator_of(model);
  const SpeechTokens tokens =
      speech_tokens(parts.origin, model.spec(), *generator.tokenizer, parts.end_ids);
  check_options(options, tokens, model.spec());
  Transcription transcription(generator, tokens, options, events, available_memory() / 2);
  return transcription.run(audio);
}

void visit(TranscribeOptions& o, OptionVisitor& v) {
  constexpr int64_t kMostTokens = 1 << 24;
  v.text({"language",
          "language of the speech: a code such as de, or an English name; unset = detected"},
         o.language);
  v.boolean({"translate", "translate the speech to English"}, o.translate);
  v.boolean({"timestamps", "predict the times of segments"}, o.timestamps);
  v.boolean({"word_times", "also compute the times of words"}, o.word_times);
  v.integer({"beams", "hypotheses of the beam search at temperature 0; 1 = greedy"}, o.beams, 1,
            64);
  v.number({"length_penalty", "hypotheses are ranked by log-probability / length ^ X"},
           o.length_penalty, -100, 100);
  v.integer({"samples", "texts to sample at other temperatures; the most likely one is used"},
            o.samples, 1, 64);
  v.numbers({"temperatures",
             "temperatures that are tried in order while a text repeats itself or is improbable"},
            o.temperatures, 0, 100);
  v.number({"compression_ratio",
            "try the next temperature if zlib shrinks the text by more than this factor; 0 = off"},
           o.compression_ratio, 0, 1e6);
  v.number({"logprob",
            "try the next temperature if the mean log-probability of the tokens is lower; 0 = off"},
           o.logprob, -1e6, 0);
  v.number({"no_speech",
            "leave out windows whose probability of silence is higher and whose text is "
            "improbable; 1 = off"},
           o.no_speech, 0, 1);
  v.boolean({"previous_text", "continue the text of earlier windows"}, o.previous_text);
  v.text({"prompt", "text that precedes the first window, such as names and a style"}, o.prompt);
  v.text({"hotwords", "words that precede every window"}, o.hotwords);
  v.integers({"suppress", "further tokens that are never generated"}, o.suppress, 0, kMostTokens);
  v.boolean({"voice_only", "skip audio without voice"}, o.voice_only);
  v.integer({"windows",
             "windows to decode together, each independent of the others; faster for long audio"},
            o.windows, 1, 256);
  v.integer({"max_tokens", "maximum tokens per window; 0 = as the context allows"}, o.max_tokens, 0,
            kMostTokens);
  v.seed({"seed", "random seed of temperatures above 0"}, o.seed);
}

}  // namespace fovea::infer
