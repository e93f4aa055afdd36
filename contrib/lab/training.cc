#include "lab/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/math.h"
#include "fovea/core/autograd.h"
#include "fovea/core/ops.h"
#include "fovea/core/random.h"
#include "fovea/nn/optimizer.h"

namespace fovea::lab {
namespace {

std::vector<model::MixerKind> mixers_of(const std::string& names) {
  std::vector<model::MixerKind> mixers;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find('+', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    mixers.push_back(name == "rnn"    ? model::MixerKind::rnn
                     : name == "gru"  ? model::MixerKind::gru
                     : name == "lstm" ? model::MixerKind::lstm
                                      : model::MixerKind::attention);
    begin = end + 1;
  }
  return mixers;
}

// The matrices of a mixer, in squares of the width: query, key, value and output, or two for each
// gate.
int64_t squares_of(model::MixerKind mixer) {
  switch (mixer) {
    case model::MixerKind::rnn: return 2;
    case model::MixerKind::gru: return 6;
    case model::MixerKind::lstm: return 8;
    default: return 4;
  }
}

int64_t tenth_of(int64_t steps) { return std::max<int64_t>(1, steps / 10); }

// The learning rate of a step: it rises over a tenth of the steps, and falls along a cosine to a
// tenth of its peak (Loshchilov and Hutter 2017, eq. 5).
double rate_at(const Schooling& schooling, int64_t step) {
  const auto warmup = static_cast<double>(tenth_of(schooling.steps)),
             at = static_cast<double>(step), all = static_cast<double>(schooling.steps);
  if (at < warmup) return schooling.rate * (at + 1) / (warmup + 1);
  const double done = (at - warmup) / std::max(1.0, all - warmup);
  return schooling.rate * (0.1 + 0.45 * (1 + math::cos(std::numbers::pi * done)));
}

}  // namespace

model::Spec small_decoder(int64_t layers, int64_t width, int64_t vocabulary, int64_t context) {
  model::Spec s;
  s.vocabulary = vocabulary;
  s.context = context;
  s.width = width;
  s.decoder->layers = layers;
  s.decoder->attention.heads = 4;
  s.decoder->position.kind = model::PositionKind::sinusoidal;
  // Embeddings get elements of about 1, as large as those of the sinusoids.
  s.init_deviation = 1 / std::sqrt(static_cast<float>(width));
  s.scaled_embedding = true;
  return s;
}

model::Spec small_mixture(const std::string& mixers, int64_t layers, int64_t width,
                          int64_t vocabulary, int64_t context) {
  model::Spec s = small_decoder(layers, width, vocabulary, context);
  model::StackSpec& d = *s.decoder;
  d.mixers = mixers_of(mixers);
  int64_t squares = 0;
  for (int64_t i = 0; i < layers; ++i)
    squares += squares_of(d.mixers[static_cast<size_t>(i) % d.mixers.size()]);
  // 4 squares of attention and 8 of a hidden layer of 4 widths, in two matrices.
  d.ffn.width = width * (12 * layers - squares) / (2 * layers);
  return s;
}

model::Spec with_positions(model::Spec spec, const std::string& name) {
  model::PositionSpec& p = (spec.decoder ? *spec.decoder : *spec.encoder).position;
  p.kind = name == "learned"      ? model::PositionKind::learned
           : name == "sinusoidal" ? model::PositionKind::sinusoidal
           : name == "rotary"     ? model::PositionKind::rotary
                                  : model::PositionKind::none;
  if (name == "alibi") p.bias = model::DistanceBias::alibi;
  return spec;
}

std::vector<int32_t> random_tokens(int64_t count, int64_t vocabulary, uint64_t seed, int64_t part) {
  Random random(seed, Stream::sampling, static_cast<uint32_t>(part));
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(random.word() % static_cast<uint32_t>(vocabulary)));
  return tokens;
}

double train_on(const nn::Transformer& model, const Schooling& schooling,
                const std::function<Batch(int64_t step)>& batch,
                const std::function<void(int64_t step, double loss)>& after) {
  nn::Optimizer optimizer(model.parameters(), {.weight_decay = schooling.decay});
  const int64_t last = tenth_of(schooling.steps);
  double sum = 0;
  for (int64_t step = 0; step < schooling.steps; ++step) {
    const Tensor loss = loss_of(model, batch(step), {.training = true});
    backward(loss);
    optimizer.step(rate_at(schooling, step));
    const double value = number_of(loss);
    if (step >= schooling.steps - last) sum += value / static_cast<double>(last);
    if (after) after(step, value);
  }
  return sum;
}

LabelledRows labelled_rows(const nn::Transformer& model, const Batch& batch, const nn::Pass& pass) {
  const Tensor hidden = model.hidden(batch.ids, pass);
  const std::span<int32_t> all = batch.labels.span<int32_t>();
  if (batch.labels.rank() == 1 || batch.predictions == std::ssize(all))
    return {hidden, batch.labels};
  std::vector<int32_t> indices, labels;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] < 0) continue;
    indices.push_back(static_cast<int32_t>(i));
    labels.push_back(all[i]);
  }
  const Tensor rows = hidden.view({batch.labels.size(), hidden.dim(-1)});
  return {gather(tensor_of(indices, {1, batch.predictions}), rows),
          tensor_of(labels, {1, batch.predictions})};
}

Tensor loss_of(const nn::Transformer& model, const Batch& batch, const nn::Pass& pass) {
  const LabelledRows inputs = labelled_rows(model, batch, pass);
  return model.loss(inputs.hidden, inputs.labels);
}

double mean_loss(const nn::Transformer& model, const std::vector<Batch>& batches,
                 const nn::Pass& pass) {
  const NoGradient off;
  double sum = 0, predictions = 0;
  for (const Batch& batch : batches) {
    const auto labels = static_cast<double>(batch.predictions);
    sum += labels * number_of(loss_of(model, batch, pass));
    predictions += labels;
  }
  return sum / predictions;
}

std::vector<int32_t> most_likely(const Tensor& logits) {
  const std::span<float> all = logits.span<float>();
  const int64_t V = logits.dim(-1);
  std::vector<int32_t> best;
  for (auto row = all.begin(); row != all.end(); row += V)
    best.push_back(static_cast<int32_t>(std::max_element(row, row + V) - row));
  return best;
}

double accuracy(const nn::Transformer& model, const Batch& batch, const nn::Pass& pass) {
  const NoGradient off;
  const LabelledRows inputs = labelled_rows(model, batch, pass);
  const std::vector<int32_t> found = most_likely(model.logits(inputs.hidden));
  const std::span<int32_t> labels = inputs.labels.span<int32_t>();
  double right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += found[i] == labels[i];
  return right / static_cast<double>(labels.size());
}

double loss_on_text(const nn::Transformer& model, const Trial& trial, const TextRun& run) {
  const Text& text = *trial.text;
  train_on(model, {.steps = run.steps, .rate = trial.rate}, [&](int64_t step) {
    return text.training_batch(step, run.rows, run.length, trial.seed);
  });
  const double loss =
      mean_loss(model, text.held_out_batches(trial.times(run.windows), run.rows, run.length));
  const double equal = math::log(static_cast<double>(text.vocabulary()));
  return std::isfinite(loss) ? std::min(loss, equal) : equal;
}

double fastest_step(const nn::Transformer& model, int64_t steps, int64_t rows, int64_t length) {
  const std::vector<int32_t> ids = random_tokens(rows * length, model.spec().vocabulary, 1, 0);
  const Batch batch = batch_of(ids, ids, rows);
  nn::Optimizer optimizer(model.parameters());
  return fastest_seconds(steps, [&] {
    backward(loss_of(model, batch, {.training = true}));
    optimizer.step(1e-4);
  });
}

double fastest_seconds(int64_t times, const std::function<void()>& call) {
  double best = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i <= times; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (i > 0) best = std::min(best, passed.count());
  }
  return best;
}

}  // namespace fovea::lab
