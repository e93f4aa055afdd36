#include "loop/passes.h"

#include <algorithm>

#include "kernels/sum_tree.h"
#include "loop/step_sharing.h"
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

// Returns the units of each pass of a step. The cost of a pass is that of its rows.
std::vector<PassUnits> units_of(const std::vector<Batch>& batches, bool whole_passes) {
  std::vector<PassUnits> all;
  for (const Batch& batch : batches) {
    const int64_t units = whole_passes ? 1 : batch.units,
                  tokens =
                      std::max(rows_of(batch), batch.source.ids.size() + batch.target.ids.size());
    all.push_back({units, static_cast<double>(tokens) / static_cast<double>(units)});
  }
  return all;
}

// Returns the settings of the n-th pass of a step.
model::Pass training_pass(const Batch& batch, int64_t step, int64_t n, const PassOptions& options) {
  model::Pass pass;
  pass.compute = options.compute;
  pass.training = true;
  pass.recompute = options.recompute;
  if (step < options.window.steps) pass.window = options.window.at(step);
  pass.dropout.seed = options.seed;
  pass.dropout.units = batch.units;
  if (batch.equal_lengths) {
    pass.dropout.step = static_cast<uint64_t>(step);
    pass.dropout.first_unit = n * batch.units;
  } else {  // passes differ in size, so dropout counts each pass as a step
    pass.dropout.step = static_cast<uint64_t>(options.passes.sum(step) + n);
  }
  return pass;
}

// The passes of a step; functions compute their gradients and return the loss of the step.
struct StepPasses {
  const std::vector<Batch>& batches;
  int64_t step;
  double predictions;  // of all passes
  const PassOptions& options;
  const PassLoss& loss_of;

  double take_all() const {
    PassGradients gradients;
    std::vector<double> losses;
    for (const Batch& batch : batches) {
      const int64_t n = std::ssize(losses);
      const Tensor loss = loss_of(batch, training_pass(batch, step, n, options), predictions);
      losses.push_back(number_of(loss));
      if (batches.size() == 1)
        backward(loss);
      else
        gradients.backward(loss, n);
    }
    gradients.finish();
    return tree_sum(losses);
  }

  // Computes the units of this process only.
  double share(StepSharing& sharing) const {
    std::vector<double> losses;  // and the index of each in the tree
    for (const StepNode& node : sharing.share(units_of(batches, options.whole_passes))) {
      PassGradients gradients;
      for (const UnitRange& range : node.ranges) {
        const Tensor loss = loss_of_units(range);
        losses.push_back(number_of(loss));
        losses.push_back(static_cast<double>(range.last));
        sharing.expect(node, range, gradients);
        gradients.backward(loss, range.last);
      }
      sharing.add(gradients);
    }
    return sharing.scale() * tree_sum_of(sharing.exchange(losses));
  }

 private:
  Tensor loss_of_units(const UnitRange& range) const {
    const Batch& batch = batches[range.pass];
    model::Pass pass = training_pass(batch, step, static_cast<int64_t>(range.pass), options);
    if (options.whole_passes) return loss_of(batch, pass, predictions);
    pass.dropout.first_unit += range.begin;
    pass.dropout.units = range.end - range.begin;
    return loss_of(units_of(batch, range.begin, range.end), pass, predictions);
  }
  // Returns the sum of losses, each of which is followed by its index in the tree.
  static double tree_sum_of(const std::vector<double>& losses) {
    double sums[65] = {};
    const auto merge = [&](int slot) { sums[slot - 1] += sums[slot]; };
    SumTree tree;
    for (size_t i = 0; i < losses.size(); i += 2)
      sums[tree.next(static_cast<int64_t>(losses[i + 1]), merge)] = losses[i];
    tree.finish(merge);
    return sums[0];
  }
};

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
  const StepPasses passes{batches, step, std::max(predictions, 1.0), options, loss_of};
  result.loss = options.sharing != nullptr ? passes.share(*options.sharing) : passes.take_all();
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
