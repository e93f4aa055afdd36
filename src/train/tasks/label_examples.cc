#include "train/tasks/label_examples.h"

#include <limits>

namespace fovea {
namespace {

LengthBatches batches_of(const LabelledTokens& texts, int64_t batch, uint64_t seed) {
  std::vector<LengthBatches::Lengths> lengths;
  for (int64_t i = 0; i < texts.ids.count(); ++i)
    lengths.push_back({static_cast<int32_t>(texts.ids.length(i)), 0});
  return LengthBatches(lengths, std::numeric_limits<int64_t>::max(), batch, seed);
}

Examples::Part part_of(const LabelledTokens& texts) {
  return {texts.ids.count(), texts.ids.total(), texts.labels.total(), 0};
}

}  // namespace

LabelExamples::LabelExamples(LabelledTokens training, LabelledTokens validation, int64_t batch,
                             const Spec& spec, uint64_t seed)
    : LengthExamples(
          std::move(training), std::move(validation),
          [=](const LabelledTokens& texts) { return batches_of(texts, batch, seed); }, part_of),
      decodes_(spec.decoder.has_value()),
      by_token_(spec.head.kind == HeadKind::token),
      has_types_(spec.token_types > 1),
      padding_(static_cast<int32_t>(std::max<int64_t>(spec.padding, 0))) {}

Batch LabelExamples::of(const LabelledTokens& texts, const std::vector<int64_t>& samples) const {
  const int64_t T = texts.ids.longest(samples);
  Batch batch;
  Sequence& read = decodes_ ? batch.target : batch.source;
  read.ids = texts.ids.rows(samples, T, padding_);
  if (has_types_) read.types = texts.types.rows(samples, T, 0);
  const Tensor labels = texts.labels.rows(samples, by_token_ ? T : 1, -1);
  batch.labels = by_token_ ? labels : labels.view({std::ssize(samples)});
  for (int64_t i = 0; i < batch.labels.size(); ++i)
    batch.asked += batch.labels.data_as<int32_t>()[i] >= 0;
  for (const int64_t i : samples) {
    (decodes_ ? batch.target_valid : batch.source_valid).push_back({0, texts.ids.length(i)});
    batch.tokens += texts.ids.length(i);
  }
  return batch;
}

}  // namespace fovea
