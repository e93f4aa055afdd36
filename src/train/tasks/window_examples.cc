#include "tasks/window_examples.h"

#include <algorithm>
#include <cmath>

namespace fovea::train {
namespace {

// The number of the first held-out sample. It exceeds the numbers of the training samples of any
// practical run, so that the masks of held-out samples differ from those of training samples.
constexpr int64_t kHeldOut = int64_t{1} << 40;

// Returns the sizes of the texts, counted by their weights.
Examples::Part part_of(const TextMixture& texts) {
  Examples::Part part;
  for (const auto& [tokens, weight] : texts) {
    part.tokens += std::llround(weight * static_cast<double>(tokens.count));
    part.bytes += std::llround(weight * static_cast<double>(tokens.bytes));
  }
  part.predictions = part.tokens;
  return part;
}

}  // namespace

WindowExamples::WindowExamples(const TextMixture& training, const TextMixture& validation,
                               const WindowOptions& options)
    : options_(options), batches_(training, options.length, options.seed, options.fixed) {
  learnt = part_of(training);
  held_out = part_of(validation);
  const bool any = std::any_of(validation.begin(), validation.end(), [&](const WeightedText& text) {
    return text.tokens.count > options.length;
  });
  if (any)
    validation_.emplace(validation, options.length,
                        options.most > 0 ? options.most : held_out.tokens);
}

Batch WindowExamples::training(int64_t pass) const {
  TokenRows ids(options_.batch, options_.length), next = ids;
  batches_.fill(pass, options_.batch, ids.row(0), next.row(0));
  return make(ids, next, pass * options_.batch);
}

double WindowExamples::passes_per_epoch() const {
  return static_cast<double>(learnt.tokens) / static_cast<double>(options_.batch * options_.length);
}

int64_t WindowExamples::validation_batches() const {
  return validation_ ? (validation_->windows() + options_.batch - 1) / options_.batch : 0;
}

Batch WindowExamples::validation(int64_t n) const {
  const int64_t first = n * options_.batch,
                rows = std::min(options_.batch, validation_->windows() - first);
  TokenRows ids(rows, options_.length), next = ids;
  validation_->fill(first, rows, ids.row(0), next.row(0));
  return make(ids, next, kHeldOut + first);
}

std::shared_ptr<const DocumentStarts> WindowExamples::documents(const TokenRows& ids,
                                                                int64_t before) const {
  if (!options_.separator) return nullptr;
  DocumentStarts all(static_cast<size_t>(ids.rows()), {0});
  for (int64_t r = 0; r < ids.rows(); ++r)
    for (int64_t t = 1; t < ids.width(); ++t)
      if (ids.row(r)[t] == *options_.separator) all[static_cast<size_t>(r)].push_back(before + t);
  return std::make_shared<const DocumentStarts>(std::move(all));
}

Batch NextTokenExamples::make(const TokenRows& ids, const TokenRows& next, int64_t) const {
  Batch batch;
  batch.target.ids = ids.tensor();
  batch.documents = documents(ids);
  batch.labels = next.tensor();
  batch.predictions = batch.tokens = ids.size();
  batch.units = ids.rows();
  batch.equal_lengths = true;
  return batch;
}

// Bits per byte are not meaningful if only some tokens are predicted.
MaskedExamples::MaskedExamples(const TextMixture& training, const TextMixture& validation,
                               const WindowOptions& options, Masking masking,
                               std::vector<int32_t> before, std::vector<int32_t> after)
    : WindowExamples(training, validation, options),
      masking_(std::move(masking)),
      before_(std::move(before)),
      after_(std::move(after)) {
  held_out.bytes = 0;
}

Batch MaskedExamples::make(const TokenRows& ids, const TokenRows&, int64_t first) const {
  const int64_t rows = ids.rows(), L = ids.width(), begin = std::ssize(before_),
                T = begin + L + std::ssize(after_);
  Batch batch;
  batch.documents = documents(ids, begin);
  TokenRows read(rows, T), labels(rows, T, -1);
  for (int64_t r = 0; r < rows; ++r) {
    int32_t* const window = std::ranges::copy(before_, read.row(r)).out;
    int32_t* const predicted = labels.row(r) + begin;
    std::ranges::copy(after_, std::copy_n(ids.row(r), L, window));
    mask_tokens(masking_, options_.seed, first + r, L, window, predicted);
    batch.predictions +=
        std::count_if(predicted, predicted + L, [](int32_t label) { return label >= 0; });
  }
  batch.source.ids = read.tensor();
  batch.labels = labels.tensor();
  batch.tokens = rows * T;
  batch.units = rows;
  batch.equal_lengths = true;
  return batch;
}

SpanExamples::SpanExamples(const TextMixture& training, const TextMixture& validation,
                           const WindowOptions& options, SpanCutting cutting, int32_t start)
    : WindowExamples(training, validation, options), cutting_(std::move(cutting)), start_(start) {
  held_out.bytes = 0;
}

Batch SpanExamples::make(const TokenRows& ids, const TokenRows&, int64_t first) const {
  const int64_t rows = ids.rows(), L = ids.width(), S = cutting_.source_length(L),
                T = cutting_.target_length(L);
  Batch batch;
  TokenRows source(rows, S), labels(rows, T);
  for (int64_t r = 0; r < rows; ++r)
    cut_spans(cutting_, options_.seed, first + r, ids.row(r), L, source.row(r), labels.row(r));
  batch.source.ids = source.tensor();
  batch.target.ids = labels.shifted(start_).tensor();
  batch.labels = labels.tensor();
  batch.predictions = rows * T;
  batch.tokens = rows * (S + T);
  batch.units = rows;
  batch.equal_lengths = true;
  return batch;
}

}  // namespace fovea::train
