#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/figures.h"
#include "fovea/model.h"
#include "fovea/translate.h"

namespace fovea {

// The data to evaluate on; set one of `text`, `pairs` and `labels`. The files are read as for
// training (train.h).
struct EvaluationData {
  std::vector<std::string> text;    // next, masked or cut-out tokens, depending on the model
  std::vector<std::string> pairs;   // encoder-decoders: source and target
  std::vector<std::string> labels;  // classifiers
  // Encoders: mask one token at a time, with one pass per token. exp(loss) is then the
  // pseudo-perplexity (Salazar et al. 2020).
  bool one_by_one = false;
  // How to translate the sources of `pairs` for BLEU, chrF and ROUGE-L. Unset: not translated. With
  // beams = 0 they are not translated either, but the prefix still applies to the loss.
  std::optional<TranslateOptions> translation = {};
};

struct Evaluation {
  std::string objective;  // "next_token", "masked", "one_by_one", "spans", ...
  double loss = 0;        // mean negative log-likelihood per predicted token, in nats
  double perplexity = 0;  // exp(loss)
  // bits per byte of UTF-8 text, comparable across tokenizers; 0 = not applicable
  double bits_per_byte = 0;
  int64_t tokens = 0;                   // predicted tokens; for classifiers, labels
  int64_t bytes = 0;                    // bytes of the predicted text
  int64_t sequences = 0;                // pairs or labelled texts; 0 for windows of a text
  int64_t unknown = 0;                  // unknown tokens: text that the vocabulary lacks
  FigureValues figures = {};            // all that evaluation_task(objective) lists
  std::vector<std::string> notes = {};  // for people: data that was omitted, and why
};

// Measures the loss on `data`. For decoders: perplexity over consecutive windows of the model's
// context; each token is predicted once. `progress` receives the completed fraction; return false
// to stop, which throws Failed.
Evaluation evaluate(const Model& model, const EvaluationData& data,
                    const std::function<bool(double fraction)>& progress = {});

}  // namespace fovea
