#include "fovea/train_embedder.h"

#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "data/permutation.h"
#include "embed/batching.h"
#include "embed/correlation.h"
#include "embed/example_files.h"
#include "embed/losses.h"
#include "tensor/tape.h"
#include "train/optimizer.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;
using Texts = std::vector<TokenizedText>;

constexpr int64_t kBatchTokens = 2048;  // whose activations are held for one backward pass

TrainOptions optimizer_options(const EmbedderTraining& training, int64_t steps) {
  TrainOptions options;
  options.steps = steps;
  options.learning_rate = training.learning_rate;
  options.final_rate = 0;
  options.warmup = static_cast<int64_t>(training.warmup * static_cast<double>(steps));
  options.beta2 = 0.999;  // of fine-tuning, where steps are few and small
  options.weight_decay = training.weight_decay;
  return options;
}

class EmbedderTrainer {
 public:
  explicit EmbedderTrainer(const EmbedderTraining& training)
      : training_(training),
        model_(SentenceModel::open(training.model, Weights::owned)),
        examples_(read_text_examples(training.data)),
        steps_per_epoch_((count() + training.batch - 1) / training.batch),
        steps_(training.epochs * steps_per_epoch_),
        options_(optimizer_options(training, steps_)),
        optimizer_(model_.transformer, options_) {
    if (!training.validation.empty()) validation_ = read_scored_pairs(training.validation);
    check(training.validation.empty() || validation_.size() >= 2,
          "{}: {} pairs; expected at least 2", training.validation, validation_.size());
    for (const int64_t d : training.dimensions)
      check(d >= 1 && d <= model_.modules.width, "dimensions: {}; expected 1 to {}, the model's", d,
            model_.modules.width);
  }

  EmbedderResult run(const std::function<bool(const EmbedderProgress&)>& progress) {
    const auto start = Clock::now();
    EmbedderResult result;
    result.examples = count();
    result.spearman_before = result.spearman = measured();
    for (bool go_on = true; result.steps < steps_ && go_on;) {
      EmbedderProgress now;
      now.learning_rate = learning_rate(options_, result.steps);
      now.loss = result.loss = step(result.steps++, now.learning_rate);
      now.step = result.steps;
      now.steps = steps_;
      now.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      const bool due = training_.evaluate_every > 0 && now.step % training_.evaluate_every == 0;
      if (due || now.step == steps_) now.spearman = result.spearman = measured();
      go_on = !progress || progress(now);
    }
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return result;
  }

  void save() {
    StagedFolder folder(training_.out);
    const std::string source = transformer_folder(training_.model);
    const std::string target = folder.path() + source.substr(training_.model.size());
    make_directories(target);
    copy_modules(training_.model, folder.path(), model_.transformer.spec.width);
    save_model_files(target, model_.transformer, std::nullopt, model_.origin);
    model_.format.tokenizer().save(target);
    folder.commit("modules.json");
  }

 private:
  int64_t count() const { return static_cast<int64_t>(examples_.anchors.size()); }

  Tensor vectors(const TokenBatch& batch) const { return model_.embed(batch, 0, DType::f32); }
  Tensor vectors(const Texts& texts) const {
    return in_batches(texts, model_.modules.width, kBatchTokens,
                      [&](const TokenBatch& batch) { return vectors(batch); });
  }
  Texts tokenized(const std::vector<const std::string*>& texts) const {
    return tokenize_all(texts.size(), [&](size_t i) { return model_.format.text(*texts[i]); });
  }

  // Cached gradients (Gao et al. 2021, arXiv:2101.06983): the loss of all vectors gives each its
  // gradient; then the texts go through the model again, a few at a time, and pass theirs on. So
  // the negatives of a step are as many as one likes.
  double step(int64_t number, double rate) {
    std::vector<const std::string*> anchors, candidates;
    std::vector<float> scores;
    for (const size_t i : examples_of(number)) {
      anchors.push_back(&examples_.anchors[i]);
      candidates.push_back(&examples_.positives[i]);
      if (!examples_.scores.empty()) scores.push_back(examples_.scores[i]);
    }
    if (examples_.kind == ExampleKind::triplets)
      for (const size_t i : examples_of(number)) candidates.push_back(&examples_.negatives[i]);
    const Texts sides[] = {tokenized(anchors), tokenized(candidates)};
    Tensor a = vectors(sides[0]), b = vectors(sides[1]);
    a.want_gradient();
    b.want_gradient();
    const Tensor loss = loss_of(a, b, scores);
    backward(loss);
    for (const auto& [texts, gradient] :
         {std::pair(&sides[0], a.gradient()), {&sides[1], b.gradient()}})
      pass_on(*texts, gradient);
    const double value = to_floats(loss)[0], norm = optimizer_.gradient_norm();
    if (!std::isfinite(value) || !std::isfinite(norm))
      fail(ErrorKind::Failed,
           "step {}: loss {} and gradient norm {} are not finite; expected a "
           "smaller --learning-rate",
           number + 1, value, norm);
    optimizer_.update(number + 1, rate, norm);
    return value;
  }

  std::vector<size_t> examples_of(int64_t step) const {
    const auto epoch = static_cast<uint64_t>(step / steps_per_epoch_);
    const Permutation order(static_cast<uint64_t>(count()), training_.seed + epoch);
    const int64_t first = step % steps_per_epoch_ * training_.batch;
    std::vector<size_t> chosen;
    for (int64_t i = first; i < std::min(first + training_.batch, count()); ++i)
      chosen.push_back(static_cast<size_t>(order(static_cast<uint64_t>(i))));
    return chosen;
  }

  // The mean over the whole width and those that are asked for.
  Tensor loss_of(const Tensor& a, const Tensor& b, const std::vector<float>& scores) const {
    std::vector<int64_t> widths = training_.dimensions;
    widths.push_back(model_.modules.width);
    Tensor sum;
    for (const int64_t width : widths) {
      const Tensor x = first_dimensions(a, width), y = first_dimensions(b, width);
      const Tensor part = examples_.kind == ExampleKind::scored
                              ? cosine_loss(x, y, scores)
                              : ranking_loss(x, y, static_cast<float>(training_.temperature));
      sum = sum ? add(sum, part) : part;
    }
    return scale(sum, 1 / static_cast<float>(widths.size()));
  }

  void pass_on(const Texts& texts, const Tensor& gradient) const {
    const int64_t width = gradient.dim(1);
    for (const std::vector<size_t>& chosen : batches_by_length(texts, kBatchTokens)) {
      const Tensor wanted = empty({static_cast<int64_t>(chosen.size()), width});
      for (size_t i = 0; i < chosen.size(); ++i)
        std::copy_n(gradient.data_as<float>() + static_cast<int64_t>(chosen[i]) * width, width,
                    wanted.data_as<float>() + static_cast<int64_t>(i) * width);
      backward(inner_product(vectors(token_batch(texts, chosen)), wanted));
    }
  }

  // Spearman's correlation of cosines and scores, in percent.
  std::optional<double> measured() const {
    if (validation_.empty()) return std::nullopt;
    std::vector<const std::string*> first, second;
    std::vector<double> scores, cosines;
    for (const ScoredPair& pair : validation_) {
      first.push_back(&pair.first);
      second.push_back(&pair.second);
      scores.push_back(pair.score);
    }
    const NoGradient no_gradient;
    const Tensor a = unit_length(vectors(tokenized(first))),
                 b = unit_length(vectors(tokenized(second)));
    for (int64_t i = 0; i < a.dim(0); ++i)
      cosines.push_back(inner_product(a.rows(i, i + 1), b.rows(i, i + 1)).data_as<float>()[0]);
    return 100 * spearman(cosines, scores);
  }

  const EmbedderTraining training_;
  SentenceModel model_;
  const TextExamples examples_;
  std::vector<ScoredPair> validation_;
  const int64_t steps_per_epoch_, steps_;
  const TrainOptions options_;
  Optimizer optimizer_;
};

void check_options(const EmbedderTraining& t) {
  check(!t.out.empty(), "--out: not given; expected the directory to write");
  check(t.epochs >= 1 && t.batch >= 1, "--epochs, --batch: {} and {}; expected at least 1",
        t.epochs, t.batch);
  check(t.learning_rate > 0 && t.temperature > 0,
        "--learning-rate, --temperature: {} and {}; expected more than 0", t.learning_rate,
        t.temperature);
  check(t.warmup >= 0 && t.warmup < 1, "--warmup: {}; expected 0 to 1", t.warmup);
}

}  // namespace

EmbedderResult train_embedder(const EmbedderTraining& training,
                              const std::function<bool(const EmbedderProgress&)>& progress) {
  const FloatMode mode;
  check_options(training);
  EmbedderTrainer trainer(training);
  const EmbedderResult result = trainer.run(progress);
  trainer.save();
  return result;
}

}  // namespace fovea
