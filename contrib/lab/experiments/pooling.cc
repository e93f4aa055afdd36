// Vectors of passages by pooling, from an encoder that is trained on masked tokens only: a linear
// classifier finds from which part of the text a passage is.

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"
#include "probing/logistic_regression.h"
#include "tensor/tape.h"

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

// Puts the special first token before each row.   ids [B, T - 1] -> [B, T]
std::vector<int32_t> with_first(const Tensor& ids, int32_t first) {
  std::vector<int32_t> rows;
  const int64_t length = ids.dim(1);
  for (int64_t r = 0; r < ids.dim(0); ++r) {
    rows.push_back(first);
    const int32_t* row = ids.data_as<int32_t>() + r * length;
    rows.insert(rows.end(), row, row + length);
  }
  return rows;
}

Batch masked_batch(const Passages& passages, int64_t step, uint64_t seed) {
  const Batch windows = passages.text.training_batch(step, 16, kPassage - 1, seed);
  std::vector<int32_t> ids = with_first(windows.target.ids, passages.first());
  std::vector<int32_t> labels(ids.size(), -1);
  Random random(seed, Stream::dropout, static_cast<uint32_t>(step));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i % kPassage == 0 || random.uniform_double() >= kMasked) continue;
    labels[i] = ids[i];
    ids[i] = passages.mask();
  }
  Batch batch = batch_of(ids, labels, 16);
  std::swap(batch.source, batch.target);
  return batch;
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

// Passages at equal distances over a part of the text, and the quarters of it in which they are.
struct Sample {
  Features features;
  std::vector<int32_t> labels;
};

Sample sample_of(const Transformer& model, const Passages& passages, const std::string& way,
                 int64_t count) {
  const NoGradient off;
  const TokenSpan& tokens = passages.text.training();
  std::vector<int32_t> labels;
  std::vector<float> rows;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor ids = empty({1, kPassage - 1}, DType::i32);
    tokens.copy(i * (tokens.count - kPassage) / count, kPassage - 1, ids.data_as<int32_t>());
    Batch batch = batch_of(with_first(ids, passages.first()), {0}, 1);
    Tensor hidden;
    const Probe probe{.see = [&](const ProbePoint& point, Tensor& x) {
      if (way == "word vectors" && point.what == ProbePoint::What::embedding) hidden = x;
    }};
    Pass pass;
    pass.probe = &probe;
    const Tensor encoded = model.encode(batch.target, pass);
    pool(hidden ? hidden : encoded, way, rows);
    labels.push_back(static_cast<int32_t>(i * kParts / count));
  }
  return {Features(kPooledWidth, std::move(rows)), std::move(labels)};
}

// The accuracy on every third passage of a classifier of the others.
double probed_accuracy(const Sample& sample) {
  std::vector<int32_t> learned, held_out;
  for (int32_t i = 0; i < static_cast<int32_t>(sample.labels.size()); ++i)
    (i % 3 == 2 ? held_out : learned).push_back(i);
  const LogisticRegression model =
      fit_logistic_regression(sample.features, learned, sample.labels, kParts, 1);
  const auto right = std::count_if(held_out.begin(), held_out.end(), [&](int32_t i) {
    return model.predict(sample.features, i) == sample.labels[static_cast<size_t>(i)];
  });
  return static_cast<double>(right) / static_cast<double>(held_out.size());
}

Readings pooled(const Trial& t) {
  const Passages passages{t.text->with_tokenizer("bpe:1000")};
  Spec spec = small_decoder(2, kPooledWidth, passages.text.vocabulary() + 2, kPassage);
  spec.encoder = spec.decoder;
  spec.decoder.reset();
  Transformer model = new_model(spec, t.seed);
  train_on(model, {.steps = t.times(400, 5000), .rate = t.rate},
           [&](int64_t step) { return masked_batch(passages, step, t.seed); });
  Readings readings;
  for (const std::string way : {"mean", "first", "max", "last", "word vectors"}) {
    const Sample sample =
        sample_of(model, passages, way, std::max<int64_t>(60, t.times(900, 3000)));
    readings.push_back({way, 0, probed_accuracy(sample)});
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
