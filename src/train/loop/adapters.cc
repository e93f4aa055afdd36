#include "loop/adapters.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/fields.h"
#include "formats/peft/adapters.h"
#include "formats/peft/config.h"
#include "fovea/model/model_path.h"
#include "open/image_text.h"
#include "open/open_adapters.h"
#include "tensor/host_values.h"
#include "transformer/adapters.h"
#include "transformer/pack.h"

namespace fovea::train {
namespace {

double alpha_or_default(const AdapterOptions& options) {
  return options.alpha > 0 ? options.alpha : 2 * static_cast<double>(options.rank);
}

// Returns the last names of all modules, for an error: "q_proj, k_proj, ...".
std::string names_of(const std::vector<model::AdapterModule>& modules) {
  std::set<std::string> names;
  for (const model::AdapterModule& module : modules)
    names.insert(module.name.substr(module.name.rfind('.') + 1));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<model::AdapterModule> targeted(std::vector<model::AdapterModule> modules,
                                           const std::string& targets) {
  if (targets == "all-linear") return modules;
  const std::vector<std::string> names = model::segments_of(targets, ',');
  const auto names_it = [&](const std::string& name) {
    return
        [&](const model::AdapterModule& module) { return model::names_module(name, module.name); };
  };
  for (const std::string& name : names)
    check_field(std::any_of(modules.begin(), modules.end(), names_it(name)), "lora_targets",
                "no module is named \"{}\"; expected all-linear, or some of {}", name,
                names_of(modules));
  std::erase_if(modules, [&](const model::AdapterModule& module) {
    return std::none_of(names.begin(), names.end(), [&](const std::string& name) {
      return model::names_module(name, module.name);
    });
  });
  return modules;
}

bool has_values(const model::Linear& layer) {
  return layer.weight.packed || static_cast<bool>(layer.weight.value);
}

// Only a head with labels is trained beside the adapters, since it is usually new. Its values may
// lie in the mapped file, or be packed.
void freeze_base(model::Transformer& model) {
  const std::string head = std::string(model.head_name()) + ".";
  for (const auto& [name, parameter] : model::parameters_of(model)) {
    parameter->trainable =
        parameter->trainable && model.spec.head.labels > 0 && name.starts_with(head);
    if (!parameter->trainable) continue;
    if (parameter->packed)
      parameter->value = parameter->packed.floats();
    else if (parameter->value)
      parameter->value = copy(parameter->value);
    parameter->packed = {};
  }
  model::freeze_packed(model);
}

// PEFT has no DoRA for experts, whose weights are parameters of one tensor (target_parameters).
void refuse_experts(model::Transformer& model, const std::set<const model::Linear*>& chosen) {
  for (const auto& [name, layer] : model::linears_of(model))
    check_field(!chosen.contains(layer) || !model::is_of_expert(name), "dora",
                "{} is of an expert, for which PEFT has no DoRA; expected `lora_targets` without "
                "experts, such as q_proj,v_proj, or adapters without DoRA",
                name);
}

}  // namespace

void check_adapter_options(const AdapterOptions& o, const std::string& from) {
  check_field(o.rank == 0 || !from.empty(), "lora",
              "given without `from`; expected the model to adapt");
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
  BaseWeights base{.weights = model::Weights::packed};
  switch (options.base) {
    case BasePrecision::fp32: base.weights = model::Weights::mapped; break;
    case BasePrecision::bf16: base.packing.format = WeightFormat::bf16; break;
    case BasePrecision::int8: base.packing.format = WeightFormat::int8; break;
    case BasePrecision::int4: base.packing.format = WeightFormat::int4; break;
    case BasePrecision::stored: break;
  }
  return base;
}

void add_new_adapters(model::Transformer& model, const model::Family& family,
                      const AdapterOptions& options, uint64_t seed) {
  if (options.rank == 0) return;
  freeze_base(model);
  std::set<const model::Linear*> chosen;
  std::vector<model::AdapterModule> modules = model::adapter_modules(family, model);
  for (model::AdapterModule& module :
       model::adapter_modules(family, model, model::ModuleNames::memory))
    modules.push_back(std::move(module));
  for (const model::AdapterModule& module : targeted(std::move(modules), options.targets))
    chosen.insert(module.layers.begin(), module.layers.end());
  check_field(!chosen.empty(), "lora", "the model has no linear layers that can be adapted");
  if (options.dora) refuse_experts(model, chosen);
  const auto rank = static_cast<double>(options.rank);
  const double scale = alpha_or_default(options) / (options.rslora ? std::sqrt(rank) : rank);
  uint32_t index = 0;
  for (const auto& [name, layer] : model::linears_of(model)) {
    const uint32_t number = index++;
    if (!chosen.contains(layer)) continue;
    model::add_adapter(*layer, {.rank = options.rank,
                                .scale = static_cast<float>(scale),
                                .dropout = static_cast<float>(options.dropout),
                                .dora = options.dora,
                                .index = number});
    if (has_values(*layer)) model::initialise_adapter(*layer, seed);
  }
  model::check_adapters_of_experts(model);
}

std::string take_adapter(TrainOptions& options) {
  if (options.from.empty() || !model::holds_adapter(options.from)) return "";
  const model::PeftConfig config(options.from);
  // Those of most modules: no pattern for some modules matches an empty name.
  const int64_t rank = config.rank_of("");
  const double alpha = model::alpha_of(config.scale_of(""), rank, config.rslora());
  AdapterOptions& o = options.lora;
  const AdapterOptions none;
  const auto require = [&](bool fits, const char* field, const auto& given, const auto& stored) {
    check_field(fits, field, "{}; expected {}, as in the adapter {}, or none", given, stored,
                options.from);
  };
  require(o.rank == none.rank || o.rank == rank, "lora", o.rank, rank);
  require(o.alpha == none.alpha || o.alpha == alpha, "lora_alpha", o.alpha, alpha);
  require(!o.rslora || config.rslora(), "rslora", o.rslora, config.rslora());
  require(!o.dora || config.dora(), "dora", o.dora, config.dora());
  check_field(o.targets == none.targets, "lora_targets",
              "given with {}, an adapter that is trained further; expected none", options.from);
  o.rank = rank;
  o.alpha = alpha;
  o.rslora = config.rslora();
  o.dora = config.dora();
  if (o.dropout == none.dropout) o.dropout = static_cast<double>(config.dropout());
  return options.from;
}

std::string base_of(const std::string& from) {
  return model::holds_adapter(from) ? model::adapted_model(from, {}).base : from;
}

namespace {

// Gives each of the layers of a fused tensor, which have one A of rank k r and blocks of B, its own
// r rows of A and its own block.
void divide_fused(const model::AdapterModule& module, model::Adapter& adapter) {
  const auto layers = std::ssize(module.tensor.parts);
  std::vector<model::AdapterValues*> values;
  for (const std::string& part : module.tensor.parts)
    if (const auto at = adapter.layers.find(part); at != adapter.layers.end())
      values.push_back(&at->second);
  if (layers < 2 || std::ssize(values) != layers) return;
  const int64_t all = values[0]->down.dim(0), rank = all / layers;
  bool blocks = all % layers == 0;
  for (int64_t i = 0; i < layers && blocks; ++i) {
    const HostValues<float> up(values[static_cast<size_t>(i)]->up);
    for (int64_t j = 0; j < up.size() && blocks; ++j) blocks = j % all / rank == i || up[j] == 0;
  }
  if (!blocks)
    fail(ErrorKind::Unsupported,
         "{}: the adapter of {} has one A for {} layers, which are trained one by one; expected a "
         "model that it is merged into",
         adapter.folder, module.name, layers);
  for (int64_t i = 0; i < layers; ++i) {
    model::AdapterValues& each = *values[static_cast<size_t>(i)];
    const int64_t out = each.up.dim(0);
    const Tensor up = empty({out, rank});
    for (int64_t row = 0; row < out; ++row)
      copy_elements(up, row * rank, each.up, row * all + i * rank, rank);
    each.down = copy(each.down.rows(i * rank, (i + 1) * rank));
    each.up = up;
  }
}

}  // namespace

model::Adapter read_start_adapter(const std::string& folder, const model::Family& family,
                                  model::Transformer& model) {
  model::Adapter adapter = model::read_adapter(folder, family, model);
  const auto refuse = [&](const std::string& what) {
    fail(ErrorKind::Unsupported,
         "{}: has {}, which is not trained further; expected an adapter of linear layers, or a "
         "model that it is merged into",
         folder, what);
  };
  if (!adapter.replaced.empty()) refuse(adapter.replaced.begin()->first + " (modules_to_save)");
  for (const auto& [name, values] : adapter.layers)
    if (model::is_of_expert(name)) refuse("an adapter of an expert, " + name);
  for (const model::AdapterModule& module : model::adapter_modules(family, model))
    divide_fused(module, adapter);
  return adapter;
}

void add_start_adapter(model::Transformer& model, const model::Adapter& adapter,
                       const AdapterOptions& options) {
  freeze_base(model);
  uint32_t index = 0;
  for (const auto& [name, layer] : model::linears_of(model)) {
    const uint32_t number = index++;
    const auto at = adapter.layers.find(name);
    if (at == adapter.layers.end()) continue;
    const model::AdapterValues& values = at->second;
    model::add_adapter(*layer, {.rank = values.down.dim(0),
                                .scale = values.scale,
                                .dropout = static_cast<float>(options.dropout),
                                .dora = static_cast<bool>(values.magnitude),
                                .index = number});
    if (!has_values(*layer)) continue;
    layer->adapter.down.value = copy(values.down);
    layer->adapter.up.value = copy(values.up);
    if (values.magnitude) layer->adapter.magnitude.value = copy(values.magnitude);
  }
}

model::Transformer without_adapters(const model::Transformer& model) {
  model::Transformer base = model;
  for (const auto& [name, layer] : model::linears_of(base)) layer->adapter = {};
  return base;
}

int64_t kept_by_adapters(model::Transformer& model, const AdapterOptions& options) {
  int64_t kept = 0;
  for (const auto& [name, layer] : model::linears_of(model)) {
    if (!layer->adapter.present()) continue;
    kept += options.rank + (options.dora ? layer->weight.shape[0] : 0) +
            (options.dropout > 0 ? layer->weight.shape[1] : 0);
  }
  return kept;
}

model::AdapterFacts facts_of(const AdapterOptions& options, const std::string& base) {
  return {.base = base,
          .rank = options.rank,
          .alpha = alpha_or_default(options),
          .rslora = options.rslora,
          .dropout = static_cast<float>(options.dropout),
          .decoder = model::reads_images(base) ? model::decoder_module(base) : ""};
}

}  // namespace fovea::train
