#pragma once

#include "fovea/spec.h"
#include "nn/parameter.h"
#include "ops/ops.h"

namespace fovea {

// LayerNorm or RMSNorm; one that is absent is the identity.   x [..., C] -> [..., C] of dtype `out`
struct Norm {
  NormKind kind = NormKind::layer;
  float epsilon = 1e-5f;
  Parameter weight, bias;

  Norm() = default;
  Norm(const NormSpec& spec, int64_t width, bool present = true)
      : kind(spec.kind),
        epsilon(spec.epsilon),
        weight{present ? Shape{width} : Shape{}, Role::gain, {}},
        bias{present && spec.bias && spec.kind == NormKind::layer ? Shape{width} : Shape{},
             Role::bias,
             {}} {}

  Tensor operator()(const Tensor& x, DType out) const {
    if (!weight.present()) return cast(x, out);
    if (kind == NormKind::rms) return rms_norm(x, weight.value, epsilon, out);
    return layer_norm(x, weight.value, bias.value, epsilon, out);
  }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    visit(f, name + ".weight", weight);
    visit(f, name + ".bias", bias);
  }
};

// The three places around a sublayer where a norm may stand.
struct Norms {
  Norm input, output, sum;

  Norms() = default;
  Norms(const NormSpec& spec, const Placement& placement, int64_t width)
      : input(spec, width, placement.input),
        output(spec, width, placement.output),
        sum(spec, width, placement.sum) {}

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    input.each(f, name + ".input");
    output.each(f, name + ".output");
    sum.each(f, name + ".sum");
  }
};

}  // namespace fovea
