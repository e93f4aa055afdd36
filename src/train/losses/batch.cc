#include "losses/batch.h"

#include <algorithm>

#include "base/error.h"
#include "losses/batch_images.h"
#include "losses/target_loss.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

// Returns the output of the last stack, [B, T, C].
Tensor hidden_of(const model::Transformer& model, const Batch& batch, model::Pass& pass) {
  const model::Spec& spec = model.spec;
  check(batch.documents == nullptr || !spec.encoder || !spec.decoder,
        "documents: given for an encoder-decoder; expected a model with one stack");
  pass.mask.documents = batch.documents;
  if (spec.encoder) {
    pass.mask.valid = batch.source_valid;
    const Tensor encoded = model.encode(batch.source, pass);
    if (!spec.decoder) return encoded;
    pass.memory = encoded;
    pass.memory_valid = batch.source_valid;
  }
  pass.mask.valid = batch.target_valid;
  return model.decode(batch.images ? with_image_vectors(batch, pass) : batch.target, pass);
}

// Returns the tokens of each row that the head reads.
std::vector<Interval> head_reads(const model::Transformer& model, const Batch& batch,
                                 const model::Pass& pass) {
  const Tensor& ids = (model.spec.decoder ? batch.target : batch.source).ids;
  return ids ? model.read_by_head(ids, pass.mask.valid) : pass.mask.valid;
}

// The positions with labels, these labels, and the units to which they belong.
struct LabelledRows {
  Tensor indices, labels;  // i32 [batch.predictions]
  RowUnits units;
};
LabelledRows labelled_rows(const Batch& batch, int64_t units) {
  const HostValues<int32_t> all(batch.labels);
  const int64_t rows = all.size() / units;
  std::vector<int64_t> starts;
  std::vector<int32_t> indices, labels;
  for (int64_t i = 0; i < all.size(); ++i) {
    if (i % rows == 0) starts.push_back(std::ssize(indices));
    if (all[i] < 0) continue;
    indices.push_back(static_cast<int32_t>(i));
    labels.push_back(all[i]);
  }
  starts.push_back(std::ssize(indices));
  return {tensor_of(indices, {batch.predictions}),
          tensor_of(labels, {batch.predictions}),
          {units, std::make_shared<const std::vector<int64_t>>(std::move(starts))}};
}

}  // namespace

int64_t rows_of(const Batch& batch) {
  for (const model::Sequence* sequence : {&batch.target, &batch.source})
    for (const Tensor* input : {&sequence->ids, &sequence->signal})
      if (*input) return input->dim(0);
  return 0;
}

int64_t units_of_rows(int64_t rows) {
  constexpr int64_t kFewest = 8;
  int64_t units = std::min(rows, kFewest);
  while (units < rows && rows % units != 0) ++units;
  return std::max<int64_t>(1, units);
}

namespace {

template <class Part>
std::vector<Part> part_of(const std::vector<Part>& all, int64_t begin, int64_t end) {
  return all.empty() ? all : std::vector<Part>(all.begin() + begin, all.begin() + end);
}

Tensor part_of(const Tensor& all, int64_t begin, int64_t end) {
  return all ? all.rows(begin, end) : all;
}

model::Sequence part_of(const model::Sequence& all, int64_t begin, int64_t end) {
  check(!all.vectors, "batch: has vectors in the place of tokens; expected one unit");
  return {.ids = part_of(all.ids, begin, end),
          .positions = part_of(all.positions, begin, end),
          .types = part_of(all.types, begin, end),
          .signal = part_of(all.signal, begin, end)};
}

Meaning part_of(const Meaning& all, int64_t begin, int64_t end) {
  check(!std::holds_alternative<WholeTexts>(all),
        "batch: its rows hold several texts; expected one unit");
  Meaning part = all;
  if (auto* sets = std::get_if<LabelSets>(&part))
    sets->targets = part_of(sets->targets, begin, end);
  if (auto* numbers = std::get_if<Numbers>(&part))
    numbers->targets = part_of(numbers->targets, begin, end);
  if (auto* mixed = std::get_if<MixedLabels>(&part))
    mixed->second = part_of(mixed->second, begin, end);
  if (auto* drawn = std::get_if<DrawnTokens>(&part))
    drawn->numbers = part_of(drawn->numbers, begin, end);
  if (auto* spans = std::get_if<AnswerSpans>(&part))
    *spans = {part_of(spans->samples, begin, end), part_of(spans->contexts, begin, end)};
  return part;
}

}  // namespace

Batch units_of(const Batch& batch, int64_t begin, int64_t end) {
  if (begin == 0 && end == batch.units) return batch;
  const int64_t rows = rows_of(batch) / batch.units, first = begin * rows, past = end * rows;
  Batch part;
  part.source = part_of(batch.source, first, past);
  part.target = part_of(batch.target, first, past);
  part.source_valid = part_of(batch.source_valid, first, past);
  part.target_valid = part_of(batch.target_valid, first, past);
  if (batch.documents)
    part.documents = std::make_shared<const DocumentStarts>(part_of(*batch.documents, first, past));
  if (batch.images) part.images = images_in_rows(*batch.images, first, past);
  part.labels = part_of(batch.labels, first, past);
  part.meaning = part_of(batch.meaning, first, past);
  for (const int32_t label : HostValues<int32_t>(part.labels)) part.predictions += label >= 0;
  part.units = end - begin;
  part.equal_lengths = batch.equal_lengths;
  return part;
}

HeadInputs head_inputs(const model::Transformer& model, const Batch& batch, model::Pass pass) {
  const RowUnits units = {batch.units, nullptr};
  const UnitScope of_all(units);
  const Tensor hidden = hidden_of(model, batch, pass);
  const model::HeadKind kind = model.spec.head.kind;
  const bool by_token = kind == model::HeadKind::language_model || kind == model::HeadKind::token;
  if (!by_token || batch.predictions == batch.labels.size() || batch.predictions == 0)
    return {hidden, batch.labels, units, head_reads(model, batch, pass)};
  const LabelledRows inputs = labelled_rows(batch, units.count);
  const UnitScope of_rows(inputs.units);
  const int64_t C = hidden.dim(-1);
  return {
      gather(inputs.indices, hidden.view({hidden.size() / C, C})), inputs.labels, inputs.units, {}};
}

void each_block_of_logits(
    const model::Transformer& model, const HeadInputs& inputs,
    const std::function<void(const Tensor& logits, int64_t begin, int64_t end)>& use) {
  const int64_t rows = inputs.labels.size(), C = inputs.hidden.dim(-1);
  const model::HeadKind kind = model.spec.head.kind;
  if (kind != model::HeadKind::language_model)
    return use(model.logits(inputs.hidden, inputs.valid), 0, rows);
  const Tensor hidden = inputs.hidden.view({rows, C});
  const int64_t block = logit_blocks(rows, model.spec.vocabulary).rows;
  for (int64_t begin = 0; begin < rows; begin += block) {
    const int64_t end = std::min(begin + block, rows);
    use(model.logits(hidden.rows(begin, end)), begin, end);
  }
}

Tensor all_logits(const model::Transformer& model, const Batch& batch, const model::Pass& pass) {
  const HeadInputs inputs = head_inputs(model, batch, pass);
  const UnitScope units(inputs.units);
  return model.logits(inputs.hidden, inputs.valid);
}

namespace {

// Returns loss_of(the input of the head), plus the side losses of the layers, each weighted by this
// pass's fraction of the step's labels.
template <class Loss>
Tensor with_side_losses(const model::Transformer& model, const Batch& batch, model::Pass pass,
                        double divisor, Loss&& loss_of) {
  std::vector<Tensor> side_losses;
  if (pass.training) pass.side_losses = &side_losses;
  const HeadInputs inputs = head_inputs(model, batch, pass);
  const UnitScope units(inputs.units);
  Tensor loss = loss_of(inputs);
  const auto share = static_cast<float>(static_cast<double>(batch.predictions) / divisor);
  for (const Tensor& side : side_losses) loss = add(loss, scale(side, share));
  return loss;
}

}  // namespace

Tensor label_loss(const model::Transformer& model, const Batch& batch, const model::Pass& pass,
                  double divisor, float smoothing, const Distillation* distillation) {
  return with_side_losses(model, batch, pass, divisor, [&](const HeadInputs& inputs) {
    return has_target_loss(batch) ? target_loss(model.logits(inputs.hidden, inputs.valid),
                                                inputs.labels, batch, divisor)
                                  : model.loss(inputs.hidden, inputs.valid, inputs.labels,
                                               {divisor, smoothing, distillation});
  });
}

Tensor label_loss(const model::Transformer& model, const Batch& batch, const model::Pass& pass,
                  double divisor, const LabelLoss& own) {
  return with_side_losses(model, batch, pass, divisor, [&](const HeadInputs& inputs) {
    const Tensor logits = model.logits(inputs.hidden, inputs.valid);
    const int64_t rows = inputs.labels.size();
    const Tensor sum = own(logits.view({rows, logits.dim(-1)}), inputs.labels.view({rows}));
    check(sum && sum.size() == 1 && (sum.dtype() == DType::f32 || sum.dtype() == DType::f64),
          "loss: the function returned a tensor {} of {}; expected [1] of fp32 or fp64",
          describe(sum.shape()), name_of(sum.dtype()));
    return cast(scale(sum, static_cast<float>(1 / divisor)), DType::f64);
  });
}

}  // namespace fovea::train
