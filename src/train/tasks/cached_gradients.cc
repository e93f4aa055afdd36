#include "tasks/cached_gradients.h"

#include <algorithm>
#include <span>

#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

// The gradients of a step are sums of so many groups of passes, which processes can share: the tree
// of seven keeps two sums of all gradients, that of eight three.
constexpr size_t kMostGroups = 7;

using Group = std::span<const CachedPass>;

// Returns a number whose gradients are the sums of those of the passes, which run one after the
// other, so that the activations of one are in memory.
Tensor group_loss(Group passes, const std::vector<Tensor>& trained) {
  if (passes.size() == 1) return passes[0].product();
  for (const CachedPass& pass : passes) backward(pass.product());
  Tensor total;
  for (const Tensor& x : trained) {
    const Tensor gradient = x.gradient();
    if (!gradient) continue;
    x.clear_gradient();
    const Tensor part = record(
        zeros({1}), {x},
        [gradient, slot = Saved::slot(x)](const Tensor&, Gradients& d) { d.pass(slot, gradient); });
    total = total ? add(total, part) : part;
  }
  return total;
}

}  // namespace

std::vector<Tensor> trained_tensors(const model::Transformer& model,
                                    const std::vector<model::NamedParameter>& own) {
  model::Transformer shared = model;  // the same tensors
  std::vector<model::NamedParameter> parameters = model::parameters_of(shared);
  parameters.insert(parameters.end(), own.begin(), own.end());
  std::vector<Tensor> trained;
  for (const auto& [name, parameter] : parameters)
    if (const Tensor& x = parameter->value; x && x.wants_gradient()) trained.push_back(x);
  return trained;
}

void pass_gradients(const std::vector<CachedPass>& passes, const std::vector<Tensor>& trained,
                    StepSharing* sharing) {
  const size_t groups = std::min(passes.size(), kMostGroups);
  const auto group = [&](size_t n) {
    const auto bound = [&](size_t i) { return passes.data() + passes.size() * i / groups; };
    return Group(bound(n), bound(n + 1));
  };
  if (sharing == nullptr) {
    PassGradients gradients;
    for (size_t n = 0; n < groups; ++n)
      gradients.backward(group_loss(group(n), trained), static_cast<int64_t>(n));
    return gradients.finish();
  }
  std::vector<PassUnits> units;
  for (size_t n = 0; n < groups; ++n) {
    units.push_back({.cost = 0});
    for (const CachedPass& pass : group(n)) units.back().cost += pass.cost;
  }
  for (const StepNode& node : sharing->share(units)) {
    PassGradients gradients;
    for (const UnitRange& range : node.ranges) {
      const Tensor loss = group_loss(group(static_cast<size_t>(range.pass)), trained);
      sharing->expect(node, range, gradients);
      gradients.backward(loss, range.last);
    }
    sharing->add(gradients);
  }
  sharing->exchange({});
}

}  // namespace fovea::train
