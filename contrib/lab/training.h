#pragma once

#include <functional>
#include <vector>

#include "lab/experiment.h"
#include "losses/batch.h"
#include "transformer/transformer.h"

namespace fovea::lab {

// Returns a small pre-norm decoder with sinusoids: the model that experiments vary.
Spec small_decoder(int64_t layers, int64_t width, int64_t vocabulary, int64_t context);
// The same, with recurrent layers ("rnn", "gru", "lstm"), attention ("attention") or both
// ("lstm+attention"). The hidden layers of recurrent models are widened or narrowed until the
// parameters of a layer equal those of attention (up to biases).
Spec small_mixture(const std::string& mixers, int64_t layers, int64_t width, int64_t vocabulary,
                   int64_t context);
// The same, with the positions "none", "learned", "sinusoidal", "rotary" or "alibi".
Spec with_positions(Spec spec, const std::string& name);
Transformer new_model(const Spec& spec, uint64_t seed);

// Returns tokens below `vocabulary`, each drawn with equal probability.
std::vector<int32_t> random_tokens(int64_t count, int64_t vocabulary, uint64_t seed, int64_t part);

// Rows of tokens with a label each (below 0: none), for a decoder; with one label per row if there
// are as many labels as rows.
Batch batch_of(const std::vector<int32_t>& ids, const std::vector<int32_t>& labels, int64_t rows);

struct Schooling {
  int64_t steps = 0;
  double rate = 1e-3;
  double decay = 0.1;
};
// Trains with AdamW, a warm-up over a tenth of the steps and a cosine schedule, in fp32. `batch`
// returns the batch of a step; `after` is called after each step with its loss. Returns the mean
// loss of the last tenth of the steps.
double train_on(Transformer& model, const Schooling& schooling,
                const std::function<Batch(int64_t step)>& batch,
                const std::function<void(int64_t step, double loss)>& after = {});

// Mean negative log-likelihood of the labels, in nats.
double mean_loss(const Transformer& model, const std::vector<Batch>& batches,
                 const Probe* probe = nullptr);
// Fraction of labels that are the model's most likely output.
double accuracy(const Transformer& model, const std::vector<Batch>& batches);

// Trains on the text of the trial and returns the loss on its held-out part; one that is not
// finite, or worse than that of equal probabilities, counts as log V.
struct TextRun {
  int64_t steps = 0, rows = 16, length = 64, windows = 64;
};
double loss_on_text(Transformer& model, const Trial& trial, const TextRun& run);

// The seconds of the fastest of `steps` training steps on random tokens, [rows, length], after one
// that is not measured.
double fastest_step(Transformer& model, int64_t steps, int64_t rows, int64_t length);
// The seconds of the fastest of `times` calls, after one that is not measured: other processes of
// the machine only add time.
double fastest_seconds(int64_t times, const std::function<void()>& call);

}  // namespace fovea::lab
