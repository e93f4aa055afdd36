#include "optim/moments.h"

#include "kernels/kernels.h"

namespace fovea::train {
namespace {

std::vector<Moment> moments_of_adamw(const Shape& shape, bool packed) {
  if (!packed) return {{"m", shape}, {"v", shape}};
  const Shape blocks = {(elements(shape) + kMomentBlock - 1) / kMomentBlock};
  return {{"m", shape, DType::u8},
          {"v", shape, DType::u8},
          {"largest_m", blocks},
          {"largest_v", blocks}};
}

// Shazeer and Stern 2018, section 3: the second moments of a matrix are those of its rows and
// columns.
std::vector<Moment> moments_of_adafactor(const Shape& shape) {
  if (shape.size() < 2) return {{"v", shape}};
  return {{"rows", {elements(shape) / shape.back()}}, {"columns", {shape.back()}}};
}

}  // namespace

OptimizerKind rule_for(const std::string& name, const model::Parameter& parameter,
                       OptimizerKind chosen) {
  if (chosen != OptimizerKind::muon) return chosen;
  const bool in_layer = name.starts_with("encoder.") || name.starts_with("decoder.");
  return in_layer && model::decays(parameter.role) && parameter.shape.size() == 2
             ? OptimizerKind::muon
             : OptimizerKind::adamw;
}

std::vector<Moment> moments_of(const std::string& name, const model::Parameter& parameter,
                               const MomentOptions& options) {
  const Shape& shape = parameter.shape;
  switch (rule_for(name, parameter, options.optimizer.kind)) {
    case OptimizerKind::adamw: return moments_of_adamw(shape, options.packed);
    case OptimizerKind::adafactor: return moments_of_adafactor(shape);
    case OptimizerKind::sgd:
      return options.optimizer.momentum > 0 ? std::vector<Moment>{{"m", shape}}
                                            : std::vector<Moment>{};
    case OptimizerKind::lion:
    case OptimizerKind::muon: break;
  }
  return {{"m", shape}};
}

uint64_t moment_bytes(const std::string& name, const model::Parameter& parameter,
                      const MomentOptions& options) {
  uint64_t bytes = 0;
  for (const Moment& moment : moments_of(name, parameter, options))
    bytes += static_cast<uint64_t>(elements(moment.shape)) * size_of(moment.dtype);
  return bytes;
}

}  // namespace fovea::train
