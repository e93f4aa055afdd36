#pragma once

#include <string>
#include <vector>

#include "fovea/infer/transcribe.h"
#include "generate/generate.h"
#include "transcribe/speech_tokens.h"

namespace fovea::infer {

// A sequence of steps through a matrix: the row and the column of each.
struct WarpPath {
  std::vector<int64_t> rows, columns;
};
// Returns the path of least total cost from the first to the last element, by dynamic time warping
// (Sakoe and Chiba 1978, with steps of one row, one column, or both). cost [T, S], row-major
WarpPath warp_path(const std::vector<float>& cost, int64_t T, int64_t S);

// Replaces each element of the rows of x [R, S] by the median of the `width` elements around it;
// the rows are extended by their mirror images.
void median_filter(std::vector<float>& x, int64_t S, int64_t width);

// The words of a text, as the model's tokens divide it: the text and the tokens of each.
struct TokenWord {
  std::string text;
  std::vector<int32_t> tokens;
};
// Words begin with a space, except in languages that write none, where each character is a word.
std::vector<TokenWord> words_of(const text::Tokenizer& tokenizer,
                                const std::vector<int32_t>& tokens, const std::string& language);

// Adds the times of words to the segments of one window, and corrects the times of the segments, as
// the reference implementation does: the weights of the alignment heads of cross-attention,
// normalised over the tokens and filtered, are the similarity of tokens and frames, along which a
// path is found.
struct WordTimeInput {
  const Generator& generator;
  const SpeechTokens& tokens;
  const Tensor& memory;                   // [1, S, C]
  const std::vector<int32_t>& beginning;  // start, language, task; not the previous text
  std::string language;
  int64_t frames;   // of audio in the window
  double last_end;  // end of the last word before the window, in seconds
};
void add_word_times(const WordTimeInput& input, std::vector<TranscribedSegment>& segments);

// A word and its time within the window, in seconds, and the mean similarity of its tokens and each
// output of the encoder.
struct TimedWord {
  std::string text;
  std::vector<int32_t> tokens;
  double start = 0, end = 0, probability = 0;
  std::vector<float> similarity;  // [S]
};
// Returns the words of a text at the times of the path, without the corrections of
// add_word_times().
std::vector<TimedWord> align(const WordTimeInput& input, const std::vector<int32_t>& text);

}  // namespace fovea::infer
