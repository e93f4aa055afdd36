#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/infer/embed_queue.h"
#include "fovea/model/model.h"

namespace fovea::infer {

// What a model's head predicts. texts: labels of a text or of a pair of texts. words: a label of
// each token, such as B-PER and I-PER. answers: the begin and the end of an answer within a text.
// masks: the tokens that mask tokens stand for.
enum class ClassifierTask { texts, words, answers, masks };

// How the logits of a text become scores. softmax: the probabilities of exclusive labels. sigmoid:
// a probability for each label. none: the logits themselves, of a regression.
enum class ScoreFunction { softmax, sigmoid, none };

// How the labels of tokens become those of entities. words: a word, a run of letters and digits,
// has the label of its first token, the only one that training gives a label; adjacent words with
// the same label are joined. The others are the strategies of transformers. none: an entity for
// each token. simple: adjacent tokens with the same label are joined. first, average, max: a word
// has the label of its first token, of the mean of its tokens' probabilities, or of its most
// probable token; adjacent words are then joined.
enum class EntityJoining { none, simple, first, average, max, words };

// The options of all tasks; each function uses some of them.
struct ClassifyOptions {
  bool raw = false;  // classify(): return logits
  // classify_by(): the candidate labels, the hypothesis, in which "{}" is replaced by a label, and
  // whether several labels may apply to a text, which then have independent probabilities.
  std::vector<std::string> labels;
  std::string hypothesis = "This example is {}.";
  bool multi_label = false;
  EntityJoining joining = EntityJoining::words;  // find_entities()
  // answer(), fill_masks(): the number of best results; 0 = 1 answer, or 5 tokens.
  int64_t top = 0;
  int64_t answer_tokens = 15;  // answer(): maximum tokens of an answer
  bool null_answer = false;    // answer(): allow the empty answer: the context has no answer
  // answer(), find_entities(): a longer text is read in windows of this number of tokens, special
  // tokens included, with `overlap` tokens in common. 0 = at most 384 tokens for answers, the
  // model's maximum for entities.
  int64_t window = 0;
  int64_t overlap = 128;  // at most half of a window's room for the text
  // classify(), classify_by(), fill_masks(): truncate texts that exceed the model's limit. If
  // false, such a text is an error.
  bool truncate = true;
  int64_t batch_tokens = 0;  // maximum tokens per forward pass; 0 = a fast default
  // As in EmbedOptions:
  std::function<std::string(size_t)> name_of_text;
  std::function<bool()> stop;
};
void visit(ClassifyOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

// A text, or a pair of texts that the model reads together.
struct TextInput {
  std::string text;
  std::optional<std::string> pair = {};
};

// The scores of texts.
struct Classifications {
  int64_t count = 0;
  std::vector<std::string> labels;
  std::vector<float> scores;    // [count, labels], in the order of the texts and of `labels`
  std::vector<int64_t> tokens;  // number of tokens of each text, with special tokens
  std::vector<int64_t> cut;     // number of truncated tokens of each text

  const float* row(int64_t text) const { return scores.data() + text * std::ssize(labels); }
  // Returns the indices of labels, those with the greatest scores first.
  std::vector<size_t> order(int64_t text) const;
};

// A part of a text, in characters (code points) and in bytes.
struct TextSpan {
  int64_t begin = 0, end = 0;
  size_t first_byte = 0, end_byte = 0;
};

// A part of a text with its label; `label` is without B- and I- unless EntityJoining is `none`.
struct Entity {
  TextSpan span;
  std::string text, label;
  float score = 0;  // the mean of the probabilities of its tokens or words
};

struct Question {
  std::string question, context;
};

// An answer: a part of the context, or nothing: an empty text at 0.
struct ExtractedAnswer {
  TextSpan span;
  std::string text;
  double score = 0;  // the sum over the windows and tokens of p(begin) * p(end)
};

// A candidate for a mask token.
struct MaskCandidate {
  int32_t id = 0;
  float score = 0;    // its probability there
  std::string token;  // its text
  std::string text;   // the whole text with this token in place of the mask
};
using MaskCandidates = std::vector<MaskCandidate>;

// Predicts labels of texts, entities, answers or masked tokens by a model with such a head. A
// result's bits do not depend on the other texts. Cheap to copy; copies share the weights. Safe to
// use from several threads. References that its functions return are valid as long as a copy
// exists.
class Classifier {
 public:
  // Opens a directory or a .gguf file. Throws the errors of Model::open(), and Unsupported if the
  // model has no head for one of the tasks; the message says what the model can do.
  static Classifier open(const std::string& path,
                         model::WeightPrecision precision = model::WeightPrecision::stored,
                         const std::vector<model::AdapterUse>& adapters = {});

  // Returns the classifier that an opened model is; it shares the weights. Throws Unsupported as
  // open() does.
  static Classifier of(const model::Model& model);
  // Returns the classifier with one label that a re-ranker is; it shares the weights.
  static Classifier of(const Reranker& reranker);
  // Returns the classifier that the Transformer of an embedder is; it shares the weights. Throws
  // Unsupported as open() does.
  static Classifier of(const Embedder& embedder);

  ClassifierTask task() const;
  const std::vector<std::string>& labels() const;  // by index; LABEL_0, ... if the files name none
  ScoreFunction score_function() const;            // of task texts
  int64_t max_tokens() const;                      // of a text, special tokens included
  const text::Tokenizer& tokenizer() const;
  std::string mask_token() const;  // of task masks
  const std::vector<std::string>& warnings() const;
  const model::Spec& spec() const;

  // These functions return one result for each text. They throw InvalidArgument if the model has
  // another task, if an option does not fit the model, or if a text is empty or, without
  // `truncate`, too long; and Failed if a score is not finite. Messages name the text.

  // Task texts.
  Classifications classify(const std::vector<TextInput>& texts,
                           const ClassifyOptions& options = {}) const;
  // Task texts, by a model of natural language inference, whose labels include one that begins with
  // "entail": the scores of options.labels. The model reads each text with the hypothesis of each
  // label (Yin et al. 2019, arXiv:1909.00161). Scores are a softmax of the labels' entailment
  // logits or, with multi_label or one label, of each label's entailment against contradiction.
  Classifications classify_by(const std::vector<std::string>& texts,
                              const ClassifyOptions& options) const;
  // Task words: the entities of each text, in order, without those labelled "O". A text of blanks
  // has no entities.
  std::vector<std::vector<Entity>> find_entities(const std::vector<std::string>& texts,
                                                 const ClassifyOptions& options = {}) const;
  // Task answers: the best answers, best first (Devlin et al. 2019, 4.2 and 4.3).
  std::vector<std::vector<ExtractedAnswer>> answer(const std::vector<Question>& questions,
                                                   const ClassifyOptions& options = {}) const;
  // Task masks: for each mask token of each text the most probable tokens, best first. A text
  // without a mask token is an error.
  std::vector<std::vector<MaskCandidates>> fill_masks(const std::vector<std::string>& texts,
                                                      const ClassifyOptions& options = {}) const;

  struct Parts;  // internals, for the library only
  const Parts& parts() const { return *parts_; }

 private:
  explicit Classifier(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

// Classifier::classify() for concurrent callers, with the rules of EmbedQueue.
class ClassifyQueue {
 public:
  // See EmbedQueue::Done.
  using Done = std::function<void(const Classifications* result, const Error* error)>;

  explicit ClassifyQueue(const Classifier& classifier, const QueueOptions& options = {});
  ~ClassifyQueue();

  uint64_t submit(const std::vector<TextInput>& texts, const ClassifyOptions& options, Done done);
  void cancel(uint64_t request);
  QueueStatus status() const;

 private:
  const Classifier classifier_;
  std::unique_ptr<TokenQueue> queue_;
};

}  // namespace fovea::infer
