#include "tasks/window_examples.h"

#include <algorithm>

namespace fovea::train {
namespace {

// The number of the first held-out sample. It exceeds the numbers of the training samples of any
// practical run, so that the masks of held-out samples differ from those of training samples.
constexpr int64_t kHeldOut = int64_t{1} << 40;

}  // namespace

WindowExamples::WindowExamples(const TokenSpan& training, const TokenSpan& validation,
                               const WindowOptions& options)
    : options_(options), batches_(training, options.length, options.seed, options.fixed) {
  learnt = {0, training.count, training.count, training.bytes};
  held_out = {0, validation.count, validation.count, validation.bytes};
  if (validation.count > options.length)
    validation_.emplace(validation, options.length,
                        options.most > 0 ? options.most : validation.count);
}

Batch WindowExamples::training(int64_t pass) const {
  const Tensor ids = empty({options_.batch, options_.length}, DType::i32), next = empty_like(ids);
  batches_.fill(pass, options_.batch, ids.data_as<int32_t>(), next.data_as<int32_t>());
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
  const Tensor ids = empty({rows, options_.length}, DType::i32), next = empty_like(ids);
  validation_->fill(first, rows, ids.data_as<int32_t>(), next.data_as<int32_t>());
  return make(ids, next, kHeldOut + first);
}

std::shared_ptr<const DocumentStarts> WindowExamples::documents(const Tensor& ids,
                                                                int64_t before) const {
  if (!options_.separator) return nullptr;
  const int64_t L = ids.dim(1);
  DocumentStarts all(static_cast<size_t>(ids.dim(0)), {0});
  for (int64_t r = 0; r < ids.dim(0); ++r)
    for (int64_t t = 1; t < L; ++t)
      if (ids.data_as<int32_t>()[r * L + t] == *options_.separator)
        all[static_cast<size_t>(r)].push_back(before + t);
  return std::make_shared<const DocumentStarts>(std::move(all));
}

Batch NextTokenExamples::make(const Tensor& ids, const Tensor& next, int64_t) const {
  Batch batch;
  batch.target.ids = ids;
  batch.documents = documents(ids);
  batch.labels = next;
  batch.asked = batch.tokens = ids.size();
  batch.units = ids.dim(0);
  return batch;
}

// Bits per byte are not meaningful if only some tokens are predicted.
MaskedExamples::MaskedExamples(const TokenSpan& training, const TokenSpan& validation,
                               const WindowOptions& options, Masking masking,
                               std::vector<int32_t> before, std::vector<int32_t> after)
    : WindowExamples(training, validation, options),
      masking_(std::move(masking)),
      before_(std::move(before)),
      after_(std::move(after)) {
  held_out.bytes = 0;
}

Batch MaskedExamples::make(const Tensor& ids, const Tensor&, int64_t first) const {
  const int64_t rows = ids.dim(0), L = ids.dim(1), begin = std::ssize(before_),
                T = begin + L + std::ssize(after_);
  Batch batch;
  batch.documents = documents(ids, begin);  // before tokens are masked
  batch.source.ids = empty({rows, T}, DType::i32);
  batch.labels = empty({rows, T}, DType::i32);
  std::fill_n(batch.labels.data_as<int32_t>(), rows * T, -1);
  for (int64_t r = 0; r < rows; ++r) {
    int32_t *window = ids.data_as<int32_t>() + r * L,
            *row = batch.source.ids.data_as<int32_t>() + r * T,
            *labels = batch.labels.data_as<int32_t>() + r * T + begin;
    mask_tokens(masking_, options_.seed, first + r, L, window, labels);
    row = std::copy(before_.begin(), before_.end(), row);
    row = std::copy_n(window, L, row);
    std::copy(after_.begin(), after_.end(), row);
    batch.asked += std::count_if(labels, labels + L, [](int32_t label) { return label >= 0; });
  }
  batch.tokens = rows * T;
  batch.units = rows;
  return batch;
}

SpanExamples::SpanExamples(const TokenSpan& training, const TokenSpan& validation,
                           const WindowOptions& options, SpanCutting cutting, int32_t start)
    : WindowExamples(training, validation, options), cutting_(std::move(cutting)), start_(start) {
  held_out.bytes = 0;
}

Batch SpanExamples::make(const Tensor& ids, const Tensor&, int64_t first) const {
  const int64_t rows = ids.dim(0), L = ids.dim(1), S = cutting_.source_length(L),
                T = cutting_.target_length(L);
  Batch batch;
  batch.source.ids = empty({rows, S}, DType::i32);
  batch.target.ids = empty({rows, T}, DType::i32);
  batch.labels = empty({rows, T}, DType::i32);
  for (int64_t r = 0; r < rows; ++r) {
    int32_t* labels = batch.labels.data_as<int32_t>() + r * T;
    cut_spans(cutting_, options_.seed, first + r, ids.data_as<int32_t>() + r * L, L,
              batch.source.ids.data_as<int32_t>() + r * S, labels);
    int32_t* target = batch.target.ids.data_as<int32_t>() + r * T;
    *target = start_;
    std::copy_n(labels, T - 1, target + 1);
  }
  batch.asked = rows * T;
  batch.tokens = rows * (S + T);
  batch.units = rows;
  return batch;
}

}  // namespace fovea::train
