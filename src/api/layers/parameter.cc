#include "fovea/nn/parameter.h"

#include "base/error.h"
#include "tensor/tensor.h"

namespace fovea::nn {

std::map<std::string, Tensor> values(std::span<const NamedParameter> parameters) {
  std::map<std::string, Tensor> all;
  for (const auto& [name, parameter] : parameters)
    check(all.emplace(name, parameter->value.detach()).second,
          "{}: two parameters have this name; expected one", name);
  return all;
}

void assign(std::span<const NamedParameter> parameters,
            const std::map<std::string, Tensor>& values) {
  const auto find = [&](const NamedParameter& to) -> const Tensor& {
    const auto found = values.find(to.name);
    check(found != values.end(), "{}: no such tensor among the values; expected one", to.name);
    const Tensor& own = to.parameter->value;
    check(found->second.shape() == own.shape() && found->second.dtype() == own.dtype(),
          "{}: a tensor {} of {}; expected {} of {}", to.name, describe(found->second.shape()),
          name_of(found->second.dtype()), describe(own.shape()), name_of(own.dtype()));
    return found->second;
  };
  for (const NamedParameter& each : parameters) find(each);  // before the first change
  for (const NamedParameter& each : parameters) {
    const Tensor& own = each.parameter->value;
    copy_bytes(own, 0, find(each).to(own.device()), 0, static_cast<int64_t>(own.bytes()));
  }
}

}  // namespace fovea::nn
