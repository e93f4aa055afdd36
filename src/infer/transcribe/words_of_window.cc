#include "transcribe/words_of_window.h"

#include <algorithm>

#include "audio/convert_sound.h"
#include "audio/log_mel.h"
#include "families/languages.h"
#include "transcribe/window_decoder.h"
#include "transcribe/word_times.h"

namespace fovea::infer {
WordsInSound words_of_window(const Generator& generator, const SpeechTokens& tokens,
                             const std::string& language, const media::SoundSource& sound,
                             uint64_t cache_bytes) {
  const model::InputSpec& input = generator.model.spec.input;
  const int64_t frames = 2 * input.frames;
  const std::vector<float> samples = media::first_samples(sound, frames * media::kHop);
  const std::vector<float> spectrogram = media::log_mel(samples, input.bins, frames);
  TranscribeOptions options;
  options.timestamps = false;
  WindowDecoder decoder(generator, tokens, options, cache_bytes);
  const EncodedSound heard = decoder.encode({spectrogram})[0];
  WordsInSound found;
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
    found.places = std::ssize(word.similarity);
    found.similarity.insert(found.similarity.end(), word.similarity.begin(), word.similarity.end());
    found.words.push_back({word.text, word.start, word.end, word.probability});
  }
  return found;
}

}  // namespace fovea::infer
