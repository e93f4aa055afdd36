#pragma once

#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "fovea/model/spec.h"
#include "ops/units.h"
#include "transformer/transformer.h"

namespace fovea::train {

// What the outputs of a head mean, besides or instead of one label each.
using LabelWeights = std::shared_ptr<const std::vector<float>>;  // of each label; null = 1
struct WeightedLabels {
  LabelWeights weights;  // in the loss of training
};
struct LabelSets {
  Tensor targets;  // f32 [B, L]: 1 for each label of the text, -1 for the others
  LabelWeights weights = nullptr;
};
struct Numbers {
  Tensor targets;  // f32 [B, L]
};
// Spans of tokens: for each row, its number among the sequences, and the tokens that can be in the
// answer.
struct AnswerSpans {
  std::vector<int64_t> samples;
  std::vector<Interval> contexts;
};
// Mixed inputs (Zhang et al. 2018): the loss of the batch's labels has the weight `first_share`,
// and that of `second` the rest.
struct MixedLabels {
  Tensor second;  // i32 [B]
  float first_share = 1;
};
struct DrawnTokens {
  Tensor numbers;  // f32 [B, T]: from [0, 1), one draws a token for each masked one
};
// For objectives of whole texts: the texts in the order of the rows of HeadInputs.
struct WholeTexts {
  struct Text {
    int64_t number;       // in the data
    int64_t predictions;  // number of its labels that are not below 0
  };
  std::vector<Text> texts;
};
// Answers that the model has written: no other pass has them.
struct WrittenAnswers {};
using Meaning = std::variant<std::monostate, WeightedLabels, LabelSets, Numbers, AnswerSpans,
                             MixedLabels, DrawnTokens, WholeTexts, WrittenAnswers>;

struct BatchImages;

// The inputs of one forward pass, and its labels.
struct Batch {
  // Inputs of the encoder and of the decoder; unset if the model has no such stack.
  model::Sequence source, target;
  // The interval of tokens of each row; other positions are padding. Empty = no padding.
  std::vector<Interval> source_valid, target_valid;
  // The documents of each row of a model with one stack, as in Mask; null = one per row.
  std::shared_ptr<const DocumentStarts> documents = nullptr;
  // Whose vectors replace the embeddings of some tokens of `target`; null = none.
  std::shared_ptr<const BatchImages> images = nullptr;
  // i32: [B, T] if the head has an output for each token, [B] if it has one for each sequence, [B,
  // 2] (the first and the last token of the answer) for a span; below 0 = no prediction.
  Tensor labels;
  Meaning meaning = {};     // with LabelSets and Numbers, the labels are 0
  int64_t predictions = 0;  // number of labels that are not below 0
  int64_t tokens = 0;       // number of tokens, without padding
  // The rows of sequences are divided into units of as many rows (see Units in kernels.h): the
  // gradients of a step have the same bits however its units are divided among processes.
  int64_t units = 1;
  // Whether all passes have rows of this length: if so, also however they are divided into passes.
  bool equal_lengths = false;

  // Returns what the outputs mean if it is M; null otherwise.
  template <class M>
  const M* as() const {
    return std::get_if<M>(&meaning);
  }
};

// Returns the number of rows of sequences.
int64_t rows_of(const Batch& batch);
// Returns the units of a pass of `rows` sequences that do not depend on one another: the fewest,
// but at least 8, that have as many rows each; without so many rows, one for each row.
int64_t units_of_rows(int64_t rows);
// Returns the units [begin, end) of a batch as a batch.
Batch units_of(const Batch& batch, int64_t begin, int64_t end);

// The input of the head and the labels, for the rows that have labels: hidden [rows, C], labels i32
// [rows]. Other rows are left out, since the logits of a vocabulary take most of the time of a
// small model. If all rows or none have labels, or if there is one label for each sequence, all
// rows are kept: hidden is [B, T, C].
struct HeadInputs {
  Tensor hidden, labels;
  RowUnits units;               // units of these rows
  std::vector<Interval> valid;  // of [B, T, C]
};
HeadInputs head_inputs(const model::Transformer& model, const Batch& batch, model::Pass pass);
// Calls use(logits, begin, end) with the head's outputs for consecutive rows, in blocks that take
// little memory; not for training.
void each_block_of_logits(
    const model::Transformer& model, const HeadInputs& inputs,
    const std::function<void(const Tensor& logits, int64_t begin, int64_t end)>& use);

// The outputs of the head for all rows of HeadInputs.
Tensor all_logits(const model::Transformer& model, const Batch& batch, const model::Pass& pass);

using LabelLoss = std::function<Tensor(const Tensor& logits, const Tensor& labels)>;

// Returns the sum of the negative log-likelihoods of the labels, or of the losses of the targets
// (target_loss.h), divided by `divisor`: f64 [1]. Large logits are not stored. `smoothing` is the
// probability that label smoothing spreads over all labels. With a distillation, whose rows are
// those of HeadInputs, the loss has a share of it. If the pass is for training, adds the side
// losses of the layers, such as the balance of experts, each multiplied by batch.predictions /
// divisor.
Tensor label_loss(const model::Transformer& model, const Batch& batch, const model::Pass& pass,
                  double divisor, float smoothing = 0, const Distillation* distillation = nullptr);
// The same with a loss of the caller, as in TrainOptions::loss.
Tensor label_loss(const model::Transformer& model, const Batch& batch, const model::Pass& pass,
                  double divisor, const LabelLoss& own);

}  // namespace fovea::train
