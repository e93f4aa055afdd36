#include "tasks/label_examples.h"

#include <algorithm>
#include <iterator>

#include "tensor/host_values.h"

namespace fovea::train {
namespace {

LengthBatches batches_of(const LabelledTokens& texts, const LabelExamples::Settings& settings) {
  std::vector<LengthBatches::Lengths> lengths;
  for (int64_t i = 0; i < texts.ids.count(); ++i)
    lengths.push_back({static_cast<int32_t>(texts.ids.length(i)), 0});
  return LengthBatches(lengths, settings.tokens, settings.batch, settings.seed);
}

Examples::Part part_of(const LabelledTokens& texts) {
  return {texts.ids.count(), texts.ids.total(), texts.labels.total(), 0};
}

}  // namespace

LabelExamples::LabelExamples(LabelledTokens training, LabelledTokens validation,
                             const Settings& settings, const model::Spec& spec)
    : LengthExamples(
          std::move(training), std::move(validation),
          [=](const LabelledTokens& texts) { return batches_of(texts, settings); }, part_of),
      settings_(settings),
      encodes_(spec.encoder.has_value()),
      decodes_(spec.decoder.has_value()),
      by_token_(spec.head.kind == model::HeadKind::token),
      has_types_(spec.token_types > 1),
      padding_(static_cast<int32_t>(std::max<int64_t>(spec.padding, 0))),
      outputs_(spec.head.labels) {}

// Sets the inputs. The decoder of an encoder-decoder reads the tokens of the encoder, shifted by
// one, so that its last output follows the token before the end (Lewis et al. 2020, 3.1).
void LabelExamples::read(const LabelledTokens& texts, const std::vector<int64_t>& samples,
                         Batch& batch) const {
  const int64_t T = texts.ids.longest(samples);
  const auto sequence = [&] {
    model::Sequence read;
    read.ids = texts.ids.rows(samples, T, padding_);
    if (has_types_) read.types = texts.types.rows(samples, T, 0);
    return read;
  };
  std::vector<Interval> valid;
  for (const int64_t i : samples) valid.push_back({0, texts.ids.length(i)});
  if (encodes_) batch.source = sequence(), batch.source_valid = valid;
  if (decodes_) batch.target = sequence(), batch.target_valid = valid;
  if (encodes_ && decodes_)
    batch.target.ids = model::moved_by_one(batch.target.ids, settings_.decoder_start);
}

Batch LabelExamples::of(const LabelledTokens& texts, const std::vector<int64_t>& samples) const {
  Batch batch;
  read(texts, samples, batch);
  const int64_t B = std::ssize(samples);
  batch.units = units_of_rows(B);
  const bool spans = !texts.contexts.empty();
  const int64_t width = spans ? 2 : by_token_ ? texts.ids.longest(samples) : 1;
  const Tensor labels = texts.labels.rows(samples, width, -1);
  batch.labels = spans || by_token_ ? labels : labels.view({B});
  if (spans) {
    AnswerSpans answers{samples, {}};
    for (const int64_t i : samples)
      answers.contexts.push_back(texts.contexts[static_cast<size_t>(i)]);
    batch.meaning = std::move(answers);
  } else if (texts.label_weights) {
    batch.meaning = WeightedLabels{texts.label_weights};
  }
  for (const int32_t label : HostValues<int32_t>(batch.labels)) batch.predictions += label >= 0;
  for (const int64_t i : samples) batch.tokens += texts.ids.length(i);
  if (texts.targets.empty()) return batch;
  std::vector<float> targets;
  for (const int64_t i : samples)
    std::copy_n(texts.targets.begin() + i * outputs_, outputs_, std::back_inserter(targets));
  const Tensor of_texts = tensor_of(targets, {B, outputs_});
  if (settings_.problem == model::ProblemType::regression)
    batch.meaning = Numbers{of_texts};
  else
    batch.meaning = LabelSets{of_texts, texts.label_weights};
  return batch;
}

}  // namespace fovea::train
