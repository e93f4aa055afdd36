#include "losses/sequence_log_probabilities.h"

#include "base/error.h"
#include "tensor/host_values.h"

namespace fovea::train {

SequenceLogProbabilities sequence_log_probabilities(const model::Transformer& model,
                                                    const Batch& batch, const model::Pass& given) {
  const auto* whole = batch.as<WholeTexts>();
  check(whole != nullptr && !whole->texts.empty(),
        "sequence_log_probabilities: no texts; expected at least one");
  std::vector<Tensor> side_losses;
  model::Pass pass = given;
  if (pass.training) pass.side_losses = &side_losses;
  const HeadInputs inputs = head_inputs(model, batch, pass);
  const UnitScope units(inputs.units);
  std::vector<int64_t> counts;
  for (const WholeTexts::Text& text : whole->texts) counts.push_back(text.predictions);
  SequenceLogProbabilities found;
  found.tokens = model.log_probabilities(inputs.hidden, inputs.labels);
  found.sums = segment_sums(found.tokens, counts);
  for (const Tensor& side : side_losses) {
    const Tensor each = segment_sums(side, {1});  // in double
    found.side_loss = found.side_loss ? add(found.side_loss, each) : each;
  }
  return found;
}

Tensor label_counts(const Batch& batch) {
  const auto& texts = std::get<WholeTexts>(batch.meaning).texts;
  return tensor_from<double>({std::ssize(texts)},
                             [&](int64_t n) { return texts[static_cast<size_t>(n)].predictions; });
}

}  // namespace fovea::train
