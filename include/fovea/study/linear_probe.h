#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/core/options.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/estimate.h"
#include "fovea/model/spec.h"

namespace fovea::study {

// How the vectors of a text's tokens become one vector. model: as the model does it.
enum class ProbePooling { model, cls, max, mean, mean_sqrt_len, weighted_mean, last };

// A linear probe (Alain and Bengio 2016): logistic regression on frozen vectors of texts, of each
// label against the others if a text may have several, or ridge regression of numbers. Its scores
// show what the vectors contain.
struct ProbeOptions {
  // Files of labelled texts in the formats of TrainOptions::labels, with one label, several labels
  // or a number per text. A pair of texts with vectors u and v has the features |u - v| and u v,
  // element by element.
  std::vector<std::string> data;
  // Probe the hidden states of each of these layers (0 = the embeddings) instead of the model's
  // vectors. The modules after the pooling are then left out, as with a pooling that is set.
  std::vector<int64_t> layers;
  ProbePooling pooling = ProbePooling::model;
  int64_t folds = 5;  // of the cross-validation; each has the same share of every label
  // Values of C, the inverse strength of the L2 regularisation (alpha of ridge regression is 1 /
  // C). Of several values, each fold uses the one with the most right labels, or the least squared
  // error, in a cross-validation of its training texts.
  std::vector<double> cs = {0.01, 0.1, 1, 10, 100};
  uint64_t seed = 1337;      // of the folds and of the intervals
  int64_t bootstrap = 1000;  // samples of the intervals
};
void visit(ProbeOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

using ProbeEstimate = infer::Estimate;

// The results of linear models on one kind of features. Each text is predicted once, by the model
// of the folds that it is not in.
struct ProbeScores {
  // Of labels: the fraction of texts whose labels are all right, and macro F1.
  ProbeEstimate accuracy, f1;
  // Of numbers: 1 - (sum of squared errors) / (sum of squared differences from the mean), and
  // Pearson's correlation.
  ProbeEstimate r2, pearson;
  std::vector<int32_t> predicted;   // as ProbeResult::labelled
  std::vector<double> numbers;      // predicted, as ProbeResult::numbers
  std::vector<double> fold_scores;  // the accuracy, or R2, of each fold
  std::vector<double> c;            // the C of each fold
};

struct ProbeResult {
  model::ProblemType problem = model::ProblemType::single_label;  // never automatic
  std::vector<std::string> labels;                                // names
  // The label of each text; if a text may have several: 0 or 1, [texts, labels].
  std::vector<int32_t> labelled;
  std::vector<double> numbers;  // of each text, instead of labels
  std::vector<int32_t> fold;    // of each text
  // The accuracy of always predicting the most frequent label, or of those that most texts have.
  double majority = 0;
  ProbeScores tfidf;  // the same on TF-IDF features of words
  struct Vectors {
    std::optional<int64_t> layer;  // unset: the model's vectors
    int64_t width = 0;             // elements of a vector
    ProbeScores scores;
    // Accuracy, or R2, minus that of TF-IDF; its interval is that of paired texts.
    ProbeEstimate gain;
  };
  std::vector<Vectors> vectors;    // one for each layer, or those of the model
  std::vector<std::string> notes;  // messages, such as the number of truncated texts
};

// Measures a linear probe by cross-validation, and the same kind of model on TF-IDF features
// (by scikit-learn's definition) on the same folds. The result does not depend on the
// number of threads. `progress` receives the completed fraction, on the caller's thread; return
// false to stop, which throws Failed. Throws InvalidArgument if an option is out of range, BadFile
// if a file is malformed or has labels of words, and the errors of Embedder::embed().
ProbeResult linear_probe(const infer::Embedder& embedder, const ProbeOptions& options,
                         const std::function<bool(double fraction)>& progress = {});

}  // namespace fovea::study
