#include "loop/passes.h"

#include <algorithm>

#include "kernels/sum_tree.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

std::vector<Batch> batches_of(const Examples& examples, int64_t step, const PassOptions& options) {
  std::vector<Batch> batches;
  const int64_t first = options.passes.sum(step);
  for (int64_t n = 0; n < options.passes.at(step); ++n)
    batches.push_back(examples.training(first + n));
  return batches;
}

// Returns the settings of the n-th pass of a step.
model::Pass training_pass(const Batch& batch, int64_t step, int64_t n, const PassOptions& options) {
  model::Pass pass;
  pass.compute = options.compute;
  pass.training = true;
  pass.recompute = options.recompute;
  if (step < options.window.steps) pass.window = options.window.at(step);
  pass.dropout.seed = options.seed;
  if (batch.units > 0) {
    pass.dropout.step = static_cast<uint64_t>(step);
    pass.dropout.units = batch.units;
    pass.dropout.first_unit = n * batch.units;
  } else {  // passes differ in size, so dropout counts each pass as a step
    pass.dropout.step = static_cast<uint64_t>(options.passes.sum(step) + n);
  }
  return pass;
}

}  // namespace

TrainingTask::StepLoss backward_by_passes(const Examples& examples, int64_t step,
                                          const PassOptions& options, const PassLoss& loss_of) {
  const std::vector<Batch> batches = batches_of(examples, step, options);
  TrainingTask::StepLoss result;
  double predictions = 0;
  for (const Batch& batch : batches) {
    predictions += static_cast<double>(batch.predictions);
    result.tokens += batch.tokens;
  }
  predictions = std::max(predictions, 1.0);
  PassGradients gradients;
  std::vector<double> losses;
  for (const Batch& batch : batches) {
    const int64_t n = std::ssize(losses);
    const Tensor loss = loss_of(batch, training_pass(batch, step, n, options), predictions);
    losses.push_back(number_of(loss));
    if (batches.size() == 1 || batch.units == 0)  // the order of units is that of the passes
      backward(loss);
    else
      gradients.backward(loss, n);
  }
  gradients.finish();
  result.loss = tree_sum(losses);
  return result;
}

std::string first_bad_tensor_of_passes(model::Transformer& model, const Examples& examples,
                                       int64_t step, const PassOptions& options) {
  BadTensorSearch search;
  search.weights(model);
  const model::Probe probe{.see = [&](const model::ProbePoint& point, const Tensor& x) {
    search.look(model::name_of(point), x);
  }};
  const std::vector<Batch> batches = batches_of(examples, step, options);
  for (size_t n = 0; n < batches.size() && search.found().empty(); ++n) {
    const NoGradient off;
    model::Pass pass = training_pass(batches[n], step, static_cast<int64_t>(n), options);
    pass.probe = &probe;
    search.look("logits", all_logits(model, batches[n], pass));
  }
  search.gradients(model);
  return search.found();
}

}  // namespace fovea::train
