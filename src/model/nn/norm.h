#pragma once

#include "fovea/model/spec.h"
#include "nn/parameter.h"
#include "ops/ops.h"

namespace fovea::model {

// LayerNorm, RMSNorm or DyT; the identity if it is not present.   x [..., C] -> [..., C] of dtype
// `out`
struct Norm {
  NormSpec spec;
  Parameter weight, bias;
  Parameter alpha;  // [1], of DyT

  Norm() = default;
  Norm(const NormSpec& norm, int64_t width, bool present = true)
      : spec(norm),
        weight{present && norm.gain ? Shape{width} : Shape{},
               norm.unit_offset ? Role::gain_minus_one : Role::gain,
               {}},
        bias{present && norm.gain && norm.bias && norm.kind != NormKind::rms ? Shape{width}
                                                                             : Shape{},
             Role::bias,
             {}},
        alpha{present && norm.kind == NormKind::dyt ? Shape{1} : Shape{}, Role::tanh_scale, {}},
        present_(present) {}

  bool present() const { return present_; }
  Tensor operator()(const Tensor& x, DType out) const {
    if (!present()) return cast(x, out);
    const Tensor gain = gain_of(x);
    switch (spec.kind) {
      case NormKind::rms: return rms_norm(x, gain, spec.epsilon, out);
      case NormKind::dyt: return dynamic_tanh(x, alpha.value, gain, bias.value, out);
      case NormKind::layer: break;
    }
    return layer_norm(x, gain, bias.value, {spec.epsilon, spec.epsilon_outside}, out);
  }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    visit(f, name + ".weight", weight);
    visit(f, name + ".bias", bias);
    visit(f, name + ".alpha", alpha);
  }

 private:
  Tensor gain_of(const Tensor& x) const {
    if (spec.unit_offset) return shift(weight.value, 1);
    if (weight.present()) return weight.value;
    const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
    return full({x.dim(-1)}, 1, dtype).to(x.device());
  }

  bool present_ = false;
};

// The three norms that a sublayer may have: of its input, of its output, and of the sum after it.
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

}  // namespace fovea::model
