#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/infer/transcribe.h"
#include "generate/generate.h"
#include "generate/scheduler.h"
#include "transcribe/speech_tokens.h"

namespace fovea::infer {

// What the decoder reads of a window of audio.
struct EncodedAudio {
  Tensor memory;                                     // the encoder's output, [1, S, C]
  std::shared_ptr<model::CachedText::Memory> cross;  // its keys and values in cross-attention
};

// A window of audio to decode.
struct SpeechWindow {
  EncodedAudio audio;
  std::vector<int32_t> beginning;  // the decoder's tokens up to the first generated one
  size_t start = 0;                // index of the start token in it: after the previous text
};

// The text of a window, and what the decisions of its decoding depend on.
struct WindowText {
  std::vector<int32_t> tokens;  // without the end token
  double temperature = 0;
  double logprob = 0;  // mean over the tokens and the end token, among those that the rules allow
  double compression_ratio = 0;
  double no_speech = 0;
  bool silent = false;  // to be left out
};

// Runs a speech model on windows. Not thread-safe.
class WindowDecoder {
 public:
  // The generator and the tokens must outlive it. Keys and values take at most `cache_bytes`.
  WindowDecoder(const Generator& generator, const SpeechTokens& tokens,
                const TranscribeOptions& options, uint64_t cache_bytes);

  // Encodes scaled spectrograms, [bins, frames] each, in one batch.
  std::vector<EncodedAudio> encode(const std::vector<std::vector<float>>& spectrograms);
  // Returns the token of the most likely language.
  int32_t detect_language(const EncodedAudio& audio);
  // Decodes windows together; each at the first temperature whose text is accepted.
  std::vector<WindowText> decode(const std::vector<SpeechWindow>& windows);
  // Decodes a window greedily once, for a partial result.
  std::vector<int32_t> decode_greedily(const SpeechWindow& window);

 private:
  struct DecodedText {
    std::vector<int32_t> tokens;    // with the end token
    std::optional<double> logprob;  // sum over the tokens, if it is known
  };
  GenerateOptions options_at(float temperature) const;
  std::vector<std::vector<DecodedText>> generate_all(
      const std::vector<const SpeechWindow*>& windows, const GenerateOptions& options);
  Tensor read(const EncodedAudio& audio, const std::vector<int32_t>& ids);
  WindowText evaluated(const SpeechWindow& window, const DecodedText& decoded, float temperature);
  double logprob_of_text(const Tensor& hidden, const SpeechWindow& window,
                         const std::vector<int32_t>& tokens, float temperature) const;
  bool is_accepted(const WindowText& text) const;
  bool is_silent(const WindowText& text) const;

  const Generator& generator_;
  const SpeechTokens& tokens_;
  const TranscribeOptions options_;
  GenerationRules rules_;
  Scheduler scheduler_;
  model::PagePool pool_;  // of the texts that read() reads
  uint64_t numbers_ = 0;
};

// Calls `receive` with the logits [V] of the rows [first, last) of hidden [1, T, C], in order; it
// may change them.
void each_logits(const model::Transformer& model, const Tensor& hidden, int64_t first, int64_t last,
                 const std::function<void(int64_t row, float* logits)>& receive);
// Returns the text of the tokens that are not special.
std::string speech_text(const text::Tokenizer& tokenizer, const SpeechTokens& tokens,
                        const std::vector<int32_t>& ids);
// Returns the length of a text divided by its length after compression by zlib; 0 for no text.
double compression_ratio_of(const std::string& text);

}  // namespace fovea::infer
