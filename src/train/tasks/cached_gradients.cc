#include "tasks/cached_gradients.h"

namespace fovea::train {

void pass_gradients(const std::vector<CachedPass>& passes, StepSharing* sharing) {
  if (sharing == nullptr) {
    PassGradients gradients;
    for (size_t n = 0; n < passes.size(); ++n)
      gradients.backward(passes[n].product(), static_cast<int64_t>(n));
    return gradients.finish();
  }
  std::vector<PassUnits> units;
  for (const CachedPass& pass : passes) units.push_back({.cost = pass.cost});
  for (const StepNode& node : sharing->share(units)) {
    PassGradients gradients;
    for (const UnitRange& range : node.ranges) {
      sharing->expect(node, range, gradients);
      gradients.backward(passes[range.pass].product(), range.last);
    }
    sharing->add(gradients);
  }
  sharing->exchange({});
}

}  // namespace fovea::train
