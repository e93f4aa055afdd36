#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/core/options.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/estimate.h"

namespace fovea::study {

// Sets of sentences on which the vectors of a model are measured.
struct SentenceData {
  // Files of JSON lines, tables or Parquet. The names of the keys or columns determine the task:
  // "similarity" (sentence1, sentence2, score): how well similarities agree with the scores.
  // "pairs" (sentence1, sentence2, label): how well they tell pairs of label 1 from those of label
  // 0.
  // "translations" (sentence1, sentence2): whether sentence2 is the most similar one of all (bitext
  // mining).
  // "clusters" and "labels" (text, label): how well groups of vectors (k-means, as many as labels)
  // agree with the labels, and how well a logistic regression on the vectors (C = 1) predicts the
  // label, in five folds.
  std::vector<std::string> sentences;
  int64_t bootstrap = 1000;  // samples of the intervals
  uint64_t seed = 1337;      // of the intervals, the folds and the first means of k-means
};
void visit(SentenceData& data, OptionVisitor& visitor);  // fovea/core/options.h

struct SentenceScores {
  std::string file, task;  // the task: "similarity", ...
  int64_t records = 0;     // pairs or texts
  // From 0 to 1; of similarity "spearman" and "pearson"; of pairs "average_precision", "f1" and
  // "accuracy" by the best threshold, and the thresholds, "f1_threshold" and "accuracy_threshold";
  // of translations "f1" and "accuracy"; of clusters "v_measure"; of labels "accuracy" and "f1"
  // (macro).
  std::vector<std::pair<std::string, infer::Estimate>> metrics;
};

struct SentenceEvaluation {
  std::vector<SentenceScores> scores;  // in the order of the files
  std::vector<std::string> notes;      // messages, such as the number of truncated texts
};

// Measures the vectors of the model, with its default prompt, by its similarity. The result does
// not depend on the number of threads. `progress` receives the completed fraction, on the caller's
// thread; return false to stop, which throws Failed. Throws InvalidArgument if an option is out of
// range, BadFile, with the line, if a file is malformed or too small, and the errors of
// Embedder::embed().
SentenceEvaluation evaluate_sentences(const infer::Embedder& embedder, const SentenceData& data,
                                      const std::function<bool(double fraction)>& progress = {});

}  // namespace fovea::study
