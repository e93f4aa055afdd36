#include "losses/sequence_log_probabilities.h"

#include "base/error.h"

namespace fovea::train {

SequenceLogProbabilities sequence_log_probabilities(const model::Transformer& model,
                                                    const Batch& batch, const model::Pass& given) {
  check(!batch.texts.empty(), "sequence_log_probabilities: no texts; expected at least one");
  std::vector<Tensor> side_losses;
  model::Pass pass = given;
  if (pass.training) pass.side_losses = &side_losses;
  const Questions asked = questions(model, batch, pass);
  const UnitScope units(asked.units);
  std::vector<int64_t> counts;
  for (const Batch::Text& text : batch.texts) counts.push_back(text.asked);
  SequenceLogProbabilities found;
  found.tokens = model.log_probabilities(asked.hidden, asked.labels);
  found.sums = segment_sums(found.tokens, counts);
  for (const Tensor& side : side_losses) {
    const Tensor each = add(full({1}, 0, DType::f64, side.device()), side);
    found.side_loss = found.side_loss ? add(found.side_loss, each) : each;
  }
  return found;
}

Tensor label_counts(const Batch& batch) {
  const Tensor counts = empty({std::ssize(batch.texts)}, DType::f64);
  for (size_t n = 0; n < batch.texts.size(); ++n)
    counts.data_as<double>()[n] = static_cast<double>(batch.texts[n].asked);
  return counts;
}

}  // namespace fovea::train
