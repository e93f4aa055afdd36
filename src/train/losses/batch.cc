#include "losses/batch.h"

#include <algorithm>

#include "base/error.h"
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
  return model.decode(batch.target, pass);
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

HeadInputs head_inputs(const model::Transformer& model, const Batch& batch, model::Pass pass) {
  const RowUnits units = {std::max<int64_t>(1, batch.units), nullptr};
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
