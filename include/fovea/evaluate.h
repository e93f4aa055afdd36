#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/model.h"
#include "fovea/translate.h"

namespace fovea {

// What to measure on; one of the three. Files as for training (train.h).
struct EvaluationData {
  std::vector<std::string> text;    // next token, or what is hidden or cut out, as suits the model
  std::vector<std::string> pairs;   // encoder-decoders: a target from a source
  std::vector<std::string> labels;  // classifiers
  // Encoders: hides each token of the text alone instead of some at a time, one pass for each; then
  // exp(loss) is the pseudo-perplexity (Salazar et al. 2020).
  bool one_by_one = false;
  // Of pairs: how their sources are translated, for BLEU and chrF; none = they are not. With beams
  // = 0 they are not either, but the prefix counts for the loss.
  std::optional<TranslateOptions> translation = {};
};

struct Evaluation {
  std::string objective;     // what was asked: "next_token", "masked", "one_by_one", "spans", ...
  double loss = 0;           // mean negative log-likelihood of what was asked for, in nats
  double perplexity = 0;     // exp(loss)
  double bits_per_byte = 0;  // of the text's UTF-8: comparable across tokenizers; 0 = means nothing
  int64_t tokens = 0;        // asked for; labels of a classifier
  int64_t bytes = 0;         // that those tokens stand for
  int64_t sequences = 0;     // pairs or labelled texts; 0 = windows of a text
  int64_t unknown = 0;       // characters of a text that the vocabulary lacks
  std::vector<std::pair<std::string, double>> figures = {};  // "accuracy", "f1"
  std::optional<TranslationScores> translation = {};         // of pairs
  std::vector<std::string> notes = {};                       // what was left out
};

// Next tokens are told in windows of the model's context, each token once. `progress` is told the
// part that is done; false = stop, which throws Failed.
Evaluation evaluate(const Model& model, const EvaluationData& data,
                    const std::function<bool(double fraction)>& progress = {});

}  // namespace fovea
