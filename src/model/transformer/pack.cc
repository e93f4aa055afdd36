#include "transformer/pack.h"

#include "ops/ternary.h"

namespace fovea::model {

std::optional<WeightFormat> packed_format(const Spec& spec, const std::string& name,
                                          const Parameter& parameter, WeightFormat wanted) {
  const bool tied = spec.head.tied && name == "embedding.token";
  const bool matrix = parameter.role == Role::matrix || parameter.role == Role::residual_matrix;
  if (!(matrix || tied)) return std::nullopt;
  if (name.ends_with(".router.weight") || name.ends_with(".shared_gate.weight"))
    return WeightFormat::f32;
  if (name.starts_with("input."))
    return wanted == WeightFormat::bf16 ? WeightFormat::bf16 : WeightFormat::f32;
  const bool in_stack = name.starts_with("encoder.") || name.starts_with("decoder.");
  const bool head = tied || (!in_stack && name.ends_with(".output.weight"));
  return head && wanted == WeightFormat::int4 ? WeightFormat::int8 : wanted;
}

uint64_t weight_bytes(Transformer& model) {
  uint64_t bytes = 0;
  model.each([&](const std::string&, const Parameter& p) {
    bytes += p.packed ? p.packed.bytes() : p.value.bytes();
  });
  return bytes;
}

void pack(Parameter& parameter, WeightFormat format, int64_t group) {
  if (parameter.ternary) parameter.value = round_ternary(parameter.value).detach();
  parameter.packed = PackedWeight(parameter.value, format, group);
  parameter.value = {};
}

void pack(Transformer& model, WeightFormat format, int64_t group) {
  model.each([&](const std::string& name, Parameter& parameter) {
    if (parameter.packed) return;
    if (const auto how = packed_format(model.spec, name, parameter, format))
      pack(parameter, *how, group);
  });
}

void freeze_packed(Transformer& model) {
  model.each([](const std::string&, Parameter& parameter) {
    if (!parameter.packed) return;
    parameter.trainable = false;
    parameter.packed.packed();
    parameter.packed.multiply_exactly();
  });
}

}  // namespace fovea::model
