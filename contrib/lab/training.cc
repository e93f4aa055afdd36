#include "lab/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/math.h"
#include "base/random.h"
#include "loop/stepper.h"
#include "tensor/tape.h"

namespace fovea::lab {
namespace {

// The core's task on batches that an experiment makes.
class GivenBatches : public TrainingTask {
 public:
  explicit GivenBatches(const std::function<Batch(int64_t step)>& batch) : batch_(batch) {}
  StepLoss backward(const Transformer& model, int64_t step) const override {
    const Batch batch = batch_(step);
    Pass pass;
    pass.training = true;
    const Tensor loss = label_loss(model, batch, pass, static_cast<double>(batch.asked));
    fovea::backward(loss);
    return {.loss = number_of(loss), .tokens = batch.tokens};
  }
  double steps_per_epoch() const override { return 1; }  // batches do not repeat
  void write_model(const std::string&, Transformer&) const override {}

 private:
  const std::function<Batch(int64_t step)>& batch_;
};

std::vector<MixerKind> mixers_of(const std::string& names) {
  std::vector<MixerKind> mixers;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find('+', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    mixers.push_back(name == "rnn"    ? MixerKind::rnn
                     : name == "gru"  ? MixerKind::gru
                     : name == "lstm" ? MixerKind::lstm
                                      : MixerKind::attention);
    begin = end + 1;
  }
  return mixers;
}

// The matrices of a mixer, in squares of the width: query, key, value and output, or two for each
// gate.
int64_t squares_of(MixerKind mixer) {
  switch (mixer) {
    case MixerKind::rnn: return 2;
    case MixerKind::gru: return 6;
    case MixerKind::lstm: return 8;
    default: return 4;
  }
}

}  // namespace

Spec small_decoder(int64_t layers, int64_t width, int64_t vocabulary, int64_t context) {
  Spec s;
  s.vocabulary = vocabulary;
  s.context = context;
  s.width = width;
  s.decoder->layers = layers;
  s.decoder->attention.heads = 4;
  s.decoder->position.kind = PositionKind::sinusoidal;
  // Embeddings get elements of about 1, as large as those of the sinusoids.
  s.init_deviation = 1 / std::sqrt(static_cast<float>(width));
  s.scaled_embedding = true;
  return s;
}

Spec small_mixture(const std::string& mixers, int64_t layers, int64_t width, int64_t vocabulary,
                   int64_t context) {
  Spec s = small_decoder(layers, width, vocabulary, context);
  StackSpec& d = *s.decoder;
  d.mixers = mixers_of(mixers);
  int64_t squares = 0;
  for (int64_t i = 0; i < layers; ++i)
    squares += squares_of(d.mixers[static_cast<size_t>(i) % d.mixers.size()]);
  // 4 squares of attention and 8 of a hidden layer of 4 widths, in two matrices.
  d.ffn.width = width * (12 * layers - squares) / (2 * layers);
  return s;
}

Spec with_positions(Spec spec, const std::string& name) {
  PositionSpec& p = (spec.decoder ? *spec.decoder : *spec.encoder).position;
  p.kind = name == "learned"      ? PositionKind::learned
           : name == "sinusoidal" ? PositionKind::sinusoidal
           : name == "rotary"     ? PositionKind::rotary
                                  : PositionKind::none;
  if (name == "alibi") p.bias = DistanceBias::alibi;
  return spec;
}

Transformer new_model(const Spec& spec, uint64_t seed) {
  Transformer model(validated(spec));
  initialise(model, seed);
  return model;
}

std::vector<int32_t> random_tokens(int64_t count, int64_t vocabulary, uint64_t seed, int64_t part) {
  Random random(seed, Stream::sampling, static_cast<uint32_t>(part));
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(random.word() % static_cast<uint32_t>(vocabulary)));
  return tokens;
}

Batch batch_of(const std::vector<int32_t>& ids, const std::vector<int32_t>& labels, int64_t rows) {
  Batch batch;
  const int64_t length = std::ssize(ids) / rows;
  batch.target.ids = empty({rows, length}, DType::i32);
  std::copy(ids.begin(), ids.end(), batch.target.ids.data_as<int32_t>());
  const bool one_each = std::ssize(labels) == rows;
  batch.labels = one_each ? empty({rows}, DType::i32) : empty({rows, length}, DType::i32);
  std::copy(labels.begin(), labels.end(), batch.labels.data_as<int32_t>());
  batch.asked = std::count_if(labels.begin(), labels.end(), [](int32_t l) { return l >= 0; });
  batch.tokens = std::ssize(ids);
  batch.units = rows;
  return batch;
}

double train_on(Transformer& model, const Schooling& schooling,
                const std::function<Batch(int64_t step)>& batch,
                const std::function<void(int64_t step, double loss)>& after) {
  TrainOptions options;
  options.steps = schooling.steps;
  options.warmup = std::max<int64_t>(1, schooling.steps / 10);
  options.learning_rate = schooling.rate;
  options.weight_decay = schooling.decay;
  const GivenBatches task(batch);
  Stepper stepper(model, task, options, DType::f32);
  const int64_t last = std::max<int64_t>(1, schooling.steps / 10);
  double sum = 0;
  for (int64_t step = 0; step < schooling.steps; ++step) {
    const double loss = stepper(step).loss;
    if (step >= schooling.steps - last) sum += loss / static_cast<double>(last);
    if (after) after(step, loss);
  }
  return sum;
}

double mean_loss(const Transformer& model, const std::vector<Batch>& batches, const Probe* probe) {
  const NoGradient off;
  double sum = 0, asked = 0;
  for (const Batch& batch : batches) {
    Pass pass;
    pass.probe = probe;
    sum += number_of(label_loss(model, batch, pass, 1));
    asked += static_cast<double>(batch.asked);
  }
  return sum / asked;
}

double accuracy(const Transformer& model, const std::vector<Batch>& batches) {
  const NoGradient off;
  int64_t right = 0, asked = 0;
  for (const Batch& batch : batches) {
    const Questions questions = fovea::questions(model, batch, {});
    each_block_of_logits(model, questions, [&](const Tensor& logits, int64_t begin, int64_t end) {
      const int64_t V = logits.dim(-1);
      for (int64_t i = begin; i < end; ++i) {
        const int32_t label = questions.labels.data_as<int32_t>()[i];
        if (label < 0) continue;
        const float* row = logits.data_as<float>() + (i - begin) * V;
        right += std::max_element(row, row + V) - row == label;
        ++asked;
      }
    });
  }
  return static_cast<double>(right) / static_cast<double>(asked);
}

double loss_on_text(Transformer& model, const Trial& trial, const TextRun& run) {
  const Text& text = *trial.text;
  train_on(model, {.steps = run.steps, .rate = trial.rate}, [&](int64_t step) {
    return text.training_batch(step, run.rows, run.length, trial.seed);
  });
  const double loss =
      mean_loss(model, text.held_out_batches(trial.times(run.windows), run.rows, run.length));
  const double equal = math::log(static_cast<double>(text.vocabulary()));
  return std::isfinite(loss) ? std::min(loss, equal) : equal;
}

double fastest_step(Transformer& model, int64_t steps, int64_t rows, int64_t length) {
  using Clock = std::chrono::steady_clock;
  const std::vector<int32_t> ids = random_tokens(rows * length, model.spec.vocabulary, 1, 0);
  const Batch batch = batch_of(ids, ids, rows);
  double best = std::numeric_limits<double>::infinity();
  Clock::time_point start = Clock::now();
  train_on(
      model, {.steps = steps + 1, .rate = 1e-4}, [&](int64_t) { return batch; },
      [&](int64_t step, double) {
        const std::chrono::duration<double> passed = Clock::now() - start;
        if (step > 0) best = std::min(best, passed.count());
        start = Clock::now();
      });
  return best;
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
