#include "transcribe/transcribe_texts.h"

#include <algorithm>

#include "fovea/infer/transcribe.h"
#include "transcribe/window_decoder.h"

namespace fovea::infer {
namespace {

// The tokens between the start and the text.
std::vector<int32_t> task_tokens(const SpeechTokens& tokens, const std::string& language) {
  std::vector<int32_t> ids;
  if (tokens.multilingual()) {
    ids.push_back(tokens.languages.at(language));
    if (tokens.transcribe >= 0) ids.push_back(tokens.transcribe);
  }
  ids.push_back(tokens.no_timestamps);
  return ids;
}

}  // namespace

std::vector<int32_t> label_tokens(const SpeechTokens& tokens, const text::Tokenizer& tokenizer,
                                  const std::string& language, const std::string& text) {
  std::vector<int32_t> ids = task_tokens(tokens, language);
  tokenizer.encode(text, ids);
  ids.push_back(tokens.end);
  return ids;
}

void transcribe_windows(const Generator& generator, const SpeechTokens& tokens, int64_t beams,
                        const WindowedSounds& sounds, uint64_t cache_bytes,
                        const std::function<bool(int64_t n, const std::string& text)>& receive) {
  constexpr int64_t kTogether = 8;  // windows in one batch
  TranscribeOptions options;
  options.beams = beams;
  options.timestamps = false;
  options.temperatures = {0};
  options.no_speech = 1;
  options.windows = kTogether;
  WindowDecoder decoder(generator, tokens, options, cache_bytes);
  for (int64_t first = 0; first < sounds.count; first += kTogether) {
    const int64_t last = std::min(sounds.count, first + kTogether);
    std::vector<std::vector<float>> spectrograms;
    for (int64_t n = first; n < last; ++n) spectrograms.push_back(sounds.spectrogram(n));
    const std::vector<EncodedSound> encoded = decoder.encode(spectrograms);
    std::vector<SpeechWindow> windows;
    for (int64_t n = first; n < last; ++n) {
      SpeechWindow window{encoded[static_cast<size_t>(n - first)], {tokens.start}, 0};
      const std::vector<int32_t> task = task_tokens(tokens, sounds.language(n));
      window.beginning.insert(window.beginning.end(), task.begin(), task.end());
      windows.push_back(std::move(window));
    }
    const std::vector<WindowText> texts = decoder.decode(windows);
    for (int64_t n = first; n < last; ++n) {
      const WindowText& text = texts[static_cast<size_t>(n - first)];
      if (!receive(n, speech_text(*generator.tokenizer, tokens, text.tokens))) return;
    }
  }
}

}  // namespace fovea::infer
