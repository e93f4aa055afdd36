#include "train/adapters.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/fields.h"
#include "families/adapters.h"
#include "families/peft_config.h"
#include "model/adapters.h"
#include "model/pack.h"

namespace fovea {
namespace {

double alpha_or_default(const AdapterOptions& options) {
  return options.alpha > 0 ? options.alpha : 2 * static_cast<double>(options.rank);
}

// Returns the last names of all modules, for an error: "q_proj, k_proj, ...".
std::string names_of(const std::vector<AdapterModule>& modules) {
  std::set<std::string> names;
  for (const AdapterModule& module : modules)
    names.insert(module.name.substr(module.name.rfind('.') + 1));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<AdapterModule> targeted(std::vector<AdapterModule> modules,
                                    const std::string& targets) {
  if (targets == "all-linear") return modules;
  const std::vector<std::string> names = segments_of(targets, ',');
  const auto names_it = [&](const std::string& name) {
    return [&](const AdapterModule& module) { return names_module(name, module.name); };
  };
  for (const std::string& name : names)
    check_field(std::any_of(modules.begin(), modules.end(), names_it(name)), "lora_targets",
                "no module is named \"{}\"; expected all-linear, or some of {}", name,
                names_of(modules));
  std::erase_if(modules, [&](const AdapterModule& module) {
    return std::none_of(names.begin(), names.end(),
                        [&](const std::string& name) { return names_module(name, module.name); });
  });
  return modules;
}

bool has_values(const Linear& layer) {
  return layer.weight.packed || static_cast<bool>(layer.weight.value);
}

// Only a head with labels is trained beside the adapters, since it is usually new. Its values may
// lie in the mapped file, or be packed.
void freeze_base(Transformer& model) {
  const std::string head = std::string(model.head_name()) + ".";
  for (const auto& [name, parameter] : parameters_of(model)) {
    parameter->trainable =
        parameter->trainable && model.spec.head.labels > 0 && name.starts_with(head);
    if (!parameter->trainable) continue;
    if (parameter->packed)
      parameter->value = parameter->packed.floats();
    else if (parameter->value)
      parameter->value = copy(parameter->value);
    parameter->packed = {};
  }
  freeze_packed(model);
}

// PEFT has no DoRA for experts, whose weights are parameters of one tensor (target_parameters).
void refuse_experts(Transformer& model, const std::set<const Linear*>& chosen) {
  for (const auto& [name, layer] : linears_of(model))
    check_field(!chosen.contains(layer) || !is_of_expert(name), "dora",
                "{} is of an expert, for which PEFT has no DoRA; expected `lora_targets` without "
                "experts, such as q_proj,v_proj, or adapters without DoRA",
                name);
}

}  // namespace

void check_adapter_options(const AdapterOptions& o, const std::string& from) {
  check_field(o.rank == 0 || !from.empty(), "lora",
              "given without `from`; expected the model to adapt");
  check_field(o.rank == 0 || !holds_adapter(from), "from",
              "{}: is an adapter; expected a model, such as one that it is merged into", from);
  const AdapterOptions none;
  const auto needs_rank = [&](bool given, const char* field) {
    check_field(o.rank > 0 || !given, field, "given without `lora`; expected both");
  };
  needs_rank(o.alpha != none.alpha, "lora_alpha");
  needs_rank(o.targets != none.targets, "lora_targets");
  needs_rank(o.dropout != none.dropout, "lora_dropout");
  needs_rank(o.rslora, "rslora");
  needs_rank(o.dora, "dora");
  needs_rank(o.plus != none.plus, "lora_plus");
  needs_rank(o.base != none.base, "lora_base");
}

BaseWeights base_weights(const AdapterOptions& options) {
  if (options.rank == 0) return {};
  BaseWeights base{.weights = Weights::packed};
  switch (options.base) {
    case BasePrecision::fp32: base.weights = Weights::mapped; break;
    case BasePrecision::bf16: base.packing.format = WeightFormat::bf16; break;
    case BasePrecision::int8: base.packing.format = WeightFormat::int8; break;
    case BasePrecision::int4: base.packing.format = WeightFormat::int4; break;
    case BasePrecision::stored: break;
  }
  return base;
}

void add_new_adapters(Transformer& model, const Family& family, const AdapterOptions& options,
                      uint64_t seed) {
  if (options.rank == 0) return;
  freeze_base(model);
  std::set<const Linear*> chosen;
  std::vector<AdapterModule> modules = adapter_modules(family, model);
  for (AdapterModule& module : adapter_modules(family, model, ModuleNames::memory))
    modules.push_back(std::move(module));
  for (const AdapterModule& module : targeted(std::move(modules), options.targets))
    chosen.insert(module.layers.begin(), module.layers.end());
  check_field(!chosen.empty(), "lora", "the model has no linear layers that can be adapted");
  if (options.dora) refuse_experts(model, chosen);
  const auto rank = static_cast<double>(options.rank);
  const double scale = alpha_or_default(options) / (options.rslora ? std::sqrt(rank) : rank);
  uint32_t index = 0;
  for (const auto& [name, layer] : linears_of(model)) {
    const uint32_t number = index++;
    if (!chosen.contains(layer)) continue;
    add_adapter(*layer, {.rank = options.rank,
                         .scale = static_cast<float>(scale),
                         .dropout = static_cast<float>(options.dropout),
                         .dora = options.dora,
                         .index = number});
    if (has_values(*layer)) initialise_adapter(*layer, seed);
  }
  check_adapters_of_experts(model);
}

int64_t kept_by_adapters(Transformer& model, const AdapterOptions& options) {
  int64_t kept = 0;
  for (const auto& [name, layer] : linears_of(model)) {
    if (!layer->adapter.present()) continue;
    kept += options.rank + (options.dora ? layer->weight.shape[0] : 0) +
            (options.dropout > 0 ? layer->weight.shape[1] : 0);
  }
  return kept;
}

AdapterFacts facts_of(const AdapterOptions& options, const std::string& base) {
  return {.base = base,
          .rank = options.rank,
          .alpha = alpha_or_default(options),
          .rslora = options.rslora,
          .dropout = static_cast<float>(options.dropout)};
}

}  // namespace fovea
