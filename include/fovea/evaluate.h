#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/infer/image_model.h"
#include "fovea/infer/metrics.h"
#include "fovea/infer/translate.h"
#include "fovea/model/model.h"
#include "fovea/train/train.h"

namespace fovea {

// The data to evaluate on; set one of `text`, `pairs` and `labels`. The files have the formats of
// TrainOptions (train.h).
struct EvaluationData {
  // Predicts next, masked or cut-out tokens, depending on the model; of conversations, the tokens
  // that training would train. With pairs of answers, a reward model is evaluated.
  std::vector<std::string> text;
  std::vector<std::string> pairs;   // encoder-decoders: source and target
  std::vector<std::string> labels;  // classifiers, and models with a head for answers
  std::vector<std::string> images;  // for evaluate_images() only: as in TrainOptions
  // Encoders, with `text`: mask one token at a time, in one copy of the window per token. exp(loss)
  // is then the pseudo-perplexity (Salazar et al. 2020).
  bool one_by_one = false;
  // Next tokens: tokens per window; 0 = the model's context. A longer window is possible unless the
  // model has a table of positions.
  int64_t context = 0;
  // Evaluates the first windows of `text`, pairs or labelled texts only; 0 = all.
  int64_t limit = 0;
  std::string chat_template;                      // conversations: as in TrainOptions
  train::TrainOn train_on = train::TrainOn::all;  // conversations: the answers to predict
  // How to translate the sources of `pairs` for BLEU, chrF and ROUGE-L. If it is unset or beams is
  // 0, the sources are not translated. The source prefix also applies to the loss.
  std::optional<infer::TranslateOptions> translation = {};
  // The processes of a job that evaluate together, all with these data; each gets all results.
  // null = this process alone. Not for evaluate_images().
  Communicator* ranks = nullptr;
};
void visit(EvaluationData& data, OptionVisitor& visitor);  // fovea/core/options.h

// Measures the loss and the other metrics on `data`. A decoder-only model reads the text in
// consecutive windows of its context and predicts each token but the first once. `progress`
// receives the completed fraction, on the caller's thread; return false to stop, which throws
// Failed. Throws InvalidArgument if an option is out of range or the data does not fit the model,
// BadFile if a file cannot be read.
infer::Evaluation evaluate(const model::Model& model, const EvaluationData& data,
                           const std::function<bool(double fraction)>& progress = {});

// Measures a model on images with labels or captions: the loss and the scores of a classifier, or
// how many texts and images a model of images and texts retrieves, each among all others.
// Throws the errors of evaluate().
infer::Evaluation evaluate_images(const infer::ImageModel& model,
                                  const std::vector<std::string>& images,
                                  const std::function<bool(double fraction)>& progress = {});

}  // namespace fovea
