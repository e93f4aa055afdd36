// Vectors of passages by pooling, from an encoder that is trained on masked tokens only: a linear
// classifier finds from which part of the text a passage is.

#include <algorithm>

#include "base/error.h"
#include "fovea/core/autograd.h"
#include "fovea/core/random.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/linear_classifier.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int64_t kPassage = 48, kPooledWidth = 64, kParts = 4;
constexpr double kMasked = 0.15;

// Two more tokens than the text has: the first token of each passage, and the mask.
struct Passages {
  Text text;
  int32_t first() const { return static_cast<int32_t>(text.vocabulary()); }
  int32_t mask() const { return first() + 1; }
};

// Puts the special first token before each row of `length` tokens.
std::vector<int32_t> with_first(std::span<const int32_t> ids, int64_t length, int32_t first) {
  std::vector<int32_t> rows;
  for (auto row = ids.begin(); row != ids.end(); row += length) {
    rows.push_back(first);
    rows.insert(rows.end(), row, row + length);
  }
  return rows;
}

Batch masked_batch(const Passages& passages, int64_t step, uint64_t seed) {
  const Batch windows = passages.text.training_batch(step, 16, kPassage - 1, seed);
  std::vector<int32_t> ids =
      with_first(windows.ids.span<int32_t>(), kPassage - 1, passages.first());
  std::vector<int32_t> labels(ids.size(), -1);
  Random random(seed, Stream::dropout, static_cast<uint32_t>(step));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i % kPassage == 0 || random.uniform_double() >= kMasked) continue;
    labels[i] = ids[i];
    ids[i] = passages.mask();
  }
  return batch_of(ids, labels, 16);
}

// Returns a vector per row of hidden states [B, T, C], appended to `rows`.
void pool(const Tensor& hidden, const std::string& way, std::vector<float>& rows) {
  const int64_t B = hidden.dim(0), T = hidden.dim(1), C = hidden.dim(2);
  for (int64_t b = 0; b < B; ++b) {
    const float* x = hidden.data_as<float>() + b * T * C;
    for (int64_t c = 0; c < C; ++c) {
      float y = way == "last" ? x[(T - 1) * C + c] : x[c];
      for (int64_t t = 1; t < T && (way == "max" || way != "first") && way != "last"; ++t)
        y = way == "max" ? std::max(y, x[t * C + c]) : y + x[t * C + c];
      rows.push_back(way == "mean" || way == "word vectors" ? y / static_cast<float>(T) : y);
    }
  }
}

// The accuracy, on every third of `count` passages at equal distances, of a classifier of the
// others: in which quarter of the text are they?
double probed_accuracy(const nn::Transformer& model, const Passages& passages,
                       const std::string& way, int64_t count) {
  const std::span<const int32_t> tokens = passages.text.training();
  Tensor words;
  const auto watch = [&](std::string_view, int64_t, Tensor& x) { words = x; };
  const nn::Pass pass{.hook = watch, .hooked = {"embedding"}};
  Classified learned, unseen;
  for (int64_t i = 0; i < count; ++i) {
    const NoGradient off;
    const int64_t start = i * (std::ssize(tokens) - kPassage) / count;
    const std::vector<int32_t> ids = with_first(
        tokens.subspan(static_cast<size_t>(start), kPassage - 1), kPassage - 1, passages.first());
    const Tensor hidden = model.hidden(tensor_of(ids, {1, kPassage}), pass);
    Classified& part = i % 3 == 2 ? unseen : learned;
    pool(way == "word vectors" ? words : hidden, way, part.rows);
    part.labels.push_back(static_cast<int32_t>(i * kParts / count));
  }
  return linear_accuracy(learned, unseen, kParts);
}

Readings pooled(const Trial& t) {
  const Passages passages{t.text->with_bpe(1000)};
  model::Spec spec = small_decoder(2, kPooledWidth, passages.text.vocabulary() + 2, kPassage);
  spec.encoder = spec.decoder;
  spec.decoder.reset();
  const nn::Transformer model(spec, t.seed);
  train_on(model, {.steps = t.times(400, 5000), .rate = t.rate},
           [&](int64_t step) { return masked_batch(passages, step, t.seed); });
  Readings readings;
  for (const std::string way : {"mean", "first", "max", "last", "word vectors"}) {
    const int64_t count = std::max<int64_t>(60, t.times(900, 3000));
    readings.push_back({way, 0, probed_accuracy(model, passages, way, count)});
  }
  return readings;
}

std::vector<Conclusion> decide_pooling(const Table& table) {
  std::string numbers;
  for (const std::string& way : table.series())
    numbers += fmt::format("{}{} {}", numbers.empty() ? "" : ", ", way,
                           number_text(table.first(way).mean));
  const LabPoint &mean = table.first("mean"), &first = table.first("first"),
                 &words = table.first("word vectors");
  return {conclude("CLM-09: mean pooling beats the first token",
                   {{"the encoder is not tuned", above(mean, first)}}, numbers),
          conclude("CLM-09: an untuned first token is worse than the mean of word vectors",
                   {{"the encoder is not tuned", above(words, first)}}, numbers)};
}

}  // namespace

Experiment pooling() {
  return {
      .summary = {.name = "pooling",
                  .claims = {"CLM-09: mean pooling beats the first token",
                             "CLM-09: an untuned first token is worse than the mean of word "
                             "vectors"},
                  .metric = "accuracy of a linear classifier of passages, of 4 parts of the text",
                  .axis = "(one place)",
                  .rule = "each holds if the interval of the better one lies above that of the "
                          "first token",
                  .reads_text = true},
      .greater_is_better = true,
      .arms = {"masked tokens"},
      .rates = {2e-3, 1e-3, 4e-3},
      .measure = pooled,
      .conclude = decide_pooling};
}

}  // namespace fovea::lab
