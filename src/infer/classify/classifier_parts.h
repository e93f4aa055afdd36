#pragma once

// Parts that the tasks of Classifier share.

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "embed/batching.h"
#include "embed/text_format.h"
#include "fovea/infer/classify.h"
#include "transformer/transformer.h"

namespace fovea::infer {

struct Classifier::Parts {
  std::string path;
  model::Transformer transformer;
  TextFormat format;
  ClassifierTask task = ClassifierTask::texts;
  ScoreFunction function = ScoreFunction::softmax;
  std::vector<std::string> labels;
  std::optional<int32_t> start;      // see decoder_start_of()
  std::optional<int32_t> cls, mask;  // special tokens; unset: the tokenizer has no such token
  std::vector<std::string> warnings;

  // Throws InvalidArgument if the model has another task; `wanted` names the results.
  void needs(ClassifierTask wanted, const char* results) const;
  // The head's outputs, f32: [B, labels] for texts, [B, T, labels] for words and answers.
  Tensor logits(const TokenBatch& batch) const;
};

std::string name_of_text(const ClassifyOptions& options, size_t text);
// Throws Failed if the caller wants to stop.
void check_not_stopped(const ClassifyOptions& options);
// Throws InvalidArgument, naming the text, if one has no tokens or, without options.truncate, too
// many.
void check_lengths(const std::vector<TokenizedText>& texts, int64_t most,
                   const ClassifyOptions& options);
// Throws Failed, naming the text, if a score of its row [width] is not finite.
void check_finite_scores(const float* scores, int64_t width, size_t text,
                         const ClassifyOptions& options);

// Tokenises texts for classify(). Throws its errors.
std::vector<TokenizedText> read_inputs(const Classifier::Parts& parts,
                                       const std::vector<TextInput>& texts,
                                       const ClassifyOptions& options);
// Returns the result of classify() for tokenised texts and their logits [texts, labels].
Classifications classifications_of(const Classifier::Parts& parts,
                                   const std::vector<TokenizedText>& texts, const Tensor& logits,
                                   const ClassifyOptions& options);

// The logits that classify_by() compares, by index. Throws InvalidArgument if `labels` has none
// that begins with "entail".
struct Inference {
  size_t entailment, contradiction;
};
Inference inference_of(const std::vector<std::string>& labels);
// Returns the hypothesis of each candidate label. Throws InvalidArgument if there is none.
std::vector<std::string> hypotheses_of(const ClassifyOptions& options);

// The tokens of a text with their spans.
struct TokenSpans {
  std::vector<int32_t> ids;
  std::vector<TextSpan> spans;      // in the text, without the spaces that the tokenizer excludes
  std::vector<int64_t> characters;  // number of characters of each token in the vocabulary
};
TokenSpans token_spans(const text::Tokenizer& tokenizer, std::string_view text);

// Half-open ranges of tokens that cover [0, count): at most `room` tokens each, with `overlap`
// tokens in common.
std::vector<Interval> windows_over(int64_t count, int64_t room, int64_t overlap);

std::string text_at(const std::string& text, const TextSpan& span);

// Results of some texts, each with the tokens [begin, end) of a window that it is about.
template <class Result>
struct ReadResults {
  struct Found {
    Result result;
    size_t window;
    int64_t begin, end;
  };
  std::vector<TokenizedText> windows;  // as the model reads them
  std::vector<std::vector<Found>> texts;

  std::vector<std::vector<Result>> results() &&;
};

// Return the results of find_entities() and of answer(), and throw their errors. The tokens of an
// answer are those of its best span, those of the empty answer the classification token.
ReadResults<Entity> read_entities(const Classifier::Parts& parts,
                                  const std::vector<std::string>& texts,
                                  const ClassifyOptions& options);
ReadResults<ExtractedAnswer> read_answers(const Classifier::Parts& parts,
                                          const std::vector<Question>& questions,
                                          const ClassifyOptions& options);

// A label of a token without its prefix. begins: it does not continue an entity. ends: it is the
// entity's last part.
struct Tag {
  std::string name;
  bool begins = false, ends = false;
};
// Returns the tag of each label. B- begins an entity, and I- continues one. The prefixes of BIOES
// and BILOU (E-, L-: last part; S-, U-: the only part) count if the label exists with B- too.
std::vector<Tag> tags_of(const std::vector<std::string>& labels);

// Tokenises text number `index` for fill_masks(). Throws its errors.
TokenizedText masked_text(const Classifier::Parts& parts, const std::string& text,
                          const ClassifyOptions& options, size_t index);
std::vector<int64_t> mask_positions(const TokenizedText& text, int32_t mask);

// Returns softmax(x) in double.
std::vector<double> softmax_of(const float* x, int64_t count);

template <class Result>
std::vector<std::vector<Result>> ReadResults<Result>::results() && {
  std::vector<std::vector<Result>> lists;
  for (std::vector<Found>& text : texts) {
    std::vector<Result>& list = lists.emplace_back();
    for (Found& found : text) list.push_back(std::move(found.result));
  }
  return lists;
}

}  // namespace fovea::infer
