#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/infer/metrics.h"
#include "metrics/answers.h"
#include "metrics/choices.h"

namespace fovea::infer {

// The most likely answer in one window of a context: tokens [begin, end], the sum of their logits,
// and the sum of those of "no answer".
struct SpanPrediction {
  int64_t sample = 0, begin = 0, end = 0;
  double score = 0, none = 0;
};

// The predictions of a model for some data. All metrics are computed from them (metrics.cc).
struct Predictions {
  double loss = 0;       // mean negative log-likelihood per label, in nats
  int64_t labels = 0;    // tokens or classes that were predicted
  int64_t bytes = 0;     // UTF-8 bytes of the predicted text; 0 = not applicable
  Choices choices = {};  // each label with the most likely output
  // Each translation or transcript with its reference; unset: none was made.
  std::optional<std::vector<std::pair<std::string, std::string>>> translations = {};
  std::vector<double> generated_rewards = {};                // of generated answers
  double answer_tokens = 0;                                  // mean length of these answers
  std::vector<std::pair<double, double>> similarities = {};  // pairs (similarity, human score)
  std::vector<std::string> names = {};                       // of the labels
  std::vector<int64_t> ends = {};  // labels of words: number of choices up to each text's end
  LabelSets sets = {};             // several labels per text
  std::vector<std::pair<double, double>> numbers = {};  // regression: pairs (number, prediction)
  std::vector<SpanPrediction> spans = {};  // of all windows; the task makes `answers` of them
  AnswerPairs answers = {};
  // The rewards of answers: those of the chosen and of the rejected answer of each pair or, of
  // judged answers, those of the desirable and of the undesirable ones.
  struct Rewards {
    std::vector<double> chosen, rejected;
    bool paired = true;
  };
  Rewards rewards = {};
  // Images with texts: for each image, the number of texts that are at least as close to it as
  // its own, and for each text that of images.
  std::vector<int64_t> text_ranks = {}, image_ranks = {};
};

// Returns the values of the metrics that apply to the predictions.
MetricValues values_of(const std::vector<Metric>& metrics, const Predictions& predictions);

// Returns the scores of each label, or, of labels that mark entities, of each type of entity; unset
// if the predictions have no names of labels.
std::optional<LabelReport> label_report(const Predictions& predictions);

}  // namespace fovea::infer
