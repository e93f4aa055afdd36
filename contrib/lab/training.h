#pragma once

#include <functional>
#include <vector>

#include "fovea/nn/transformer.h"
#include "lab/experiment.h"

namespace fovea::lab {

// Returns a small pre-norm decoder with sinusoids: the model that experiments vary.
model::Spec small_decoder(int64_t layers, int64_t width, int64_t vocabulary, int64_t context);
// The same, with recurrent layers ("rnn", "gru", "lstm"), attention ("attention") or both
// ("lstm+attention"). The hidden layers of recurrent models are widened or narrowed until the
// parameters of a layer equal those of attention (up to biases).
model::Spec small_mixture(const std::string& mixers, int64_t layers, int64_t width,
                          int64_t vocabulary, int64_t context);
// The same, with the positions "none", "learned", "sinusoidal", "rotary" or "alibi".
model::Spec with_positions(model::Spec spec, const std::string& name);

// Returns tokens below `vocabulary`, each drawn with equal probability.
std::vector<int32_t> random_tokens(int64_t count, int64_t vocabulary, uint64_t seed, int64_t part);

struct Schooling {
  int64_t steps = 0;
  double rate = 1e-3;
  double decay = 0.1;
};
// Trains with AdamW, a warm-up over a tenth of the steps and a cosine schedule, in fp32. `batch`
// returns the batch of a step; `after` is called after each step with its loss. Returns the mean
// loss of the last tenth of the steps.
double train_on(const nn::Transformer& model, const Schooling& schooling,
                const std::function<Batch(int64_t step)>& batch,
                const std::function<void(int64_t step, double loss)>& after = {});

// The hidden states of the tokens that have labels, [1, predictions, C], and their labels, [1,
// predictions]. If each row or each token has a label, the states of all tokens, [rows, length, C].
// The head reads no others, since the logits of a vocabulary take most of the time of a small
// model.
struct LabelledRows {
  Tensor hidden, labels;
};
LabelledRows labelled_rows(const nn::Transformer& model, const Batch& batch,
                           const nn::Pass& pass = {});
// Mean negative log-likelihood of the labels, in nats: as a tensor, and of several batches.
Tensor loss_of(const nn::Transformer& model, const Batch& batch, const nn::Pass& pass = {});
double mean_loss(const nn::Transformer& model, const std::vector<Batch>& batches,
                 const nn::Pass& pass = {});
// Returns the index of the largest number of each row.   logits [..., V]
std::vector<int32_t> most_likely(const Tensor& logits);
// Fraction of labels that are the model's most likely output.
double accuracy(const nn::Transformer& model, const Batch& batch, const nn::Pass& pass = {});

// Trains on the text of the trial and returns the loss on its held-out part; one that is not
// finite, or worse than that of equal probabilities, counts as log V.
struct TextRun {
  int64_t steps = 0, rows = 16, length = 64, windows = 64;
};
double loss_on_text(const nn::Transformer& model, const Trial& trial, const TextRun& run);

// The seconds of the fastest of `steps` training steps on random tokens, [rows, length], after one
// that is not measured.
double fastest_step(const nn::Transformer& model, int64_t steps, int64_t rows, int64_t length);
// The seconds of the fastest of `times` calls, after one that is not measured: other processes of
// the machine only add time.
double fastest_seconds(int64_t times, const std::function<void()>& call);

}  // namespace fovea::lab
