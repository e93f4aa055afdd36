#include "layers/passes.h"

#include <algorithm>

#include "base/error.h"

namespace fovea::nn {
namespace {

// The name of a point without its layer.
std::string name_without_layer(const model::ProbePoint& point) {
  const std::string name = model::name_of(point);
  return point.what == model::ProbePoint::What::unnormed ? name : name.substr(0, name.find('.'));
}

}  // namespace

bool InnerPass::hooks(const std::string& name) const {
  return std::ranges::find(given_.hooked, name) != given_.hooked.end();
}

InnerPass::InnerPass(const Pass& given) : given_(given) {
  check(given.compute == DType::f32 || given.compute == DType::bf16,
        "compute: {}; expected fp32 or bf16", name_of(given.compute));
  pass_.compute = given.compute;
  pass_.training = given.training;
  pass_.mask = given.mask;
  pass_.dropout.seed = given.seed;
  pass_.dropout.step = given.step;
  if (!given.hook) return;
  probe_.wants_weights = [this](const model::ProbePoint& point) {
    return hooks(name_without_layer(point));
  };
  probe_.see = [this](const model::ProbePoint& point, Tensor& value) {
    const std::string name = name_without_layer(point);
    if (!hooks(name)) return;
    const Shape shape = value.shape();
    const DType dtype = value.dtype();
    given_.hook(name, point.layer, value);
    check(value && value.shape() == shape && value.dtype() == dtype,
          "{}: the hook left a tensor {} of {}; expected {} of {}", model::name_of(point),
          describe(value.shape()), name_of(value.dtype()), describe(shape), name_of(dtype));
  };
  pass_.probe = &probe_;
}

}  // namespace fovea::nn
