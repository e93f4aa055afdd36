#include "transformer/adapters.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace fovea::model {
namespace {

struct LinearVisitor {
  std::vector<NamedLinear> found = {};
  void operator()(const std::string&, Parameter&) {}
  void linear(const std::string& name, Linear& layer) {
    if (layer.weight.present()) found.push_back({name, &layer});
  }
};

constexpr std::string_view kExperts = ".experts.";

// Checks that both models have the same weights in memory, apart from adapters.
void check_shared(Transformer& base, Transformer& adapted) {
  std::map<std::string, const Parameter*> own;
  for (const auto& [name, parameter] : parameters_of(base)) own[name] = parameter;
  for (const auto& [name, parameter] : parameters_of(adapted)) {
    if (is_of_adapter(parameter->role)) continue;
    const auto at = own.find(name);
    const bool shared = at != own.end() &&
                        (parameter->packed ? parameter->packed.shares(at->second->packed)
                                           : parameter->value.data() == at->second->value.data());
    check(shared, "{}: differs from the base's; expected a model that shares the base's weights",
          name);
  }
}

}  // namespace

std::vector<NamedLinear> linears_of(Transformer& model) {
  LinearVisitor visitor;
  model.each(visitor);
  return std::move(visitor.found);
}

bool can_be_adapted(const std::string& name) {
  if (!name.starts_with("encoder.") && !name.starts_with("decoder.")) return false;
  const auto ends = {".router", ".shared_gate", ".recurrence.hidden", ".latent.key_up",
                     ".latent.value_up"};
  return std::none_of(ends.begin(), ends.end(),
                      [&](const char* end) { return name.ends_with(end); });
}

bool is_of_expert(const std::string& name) { return name.find(kExperts) != name.npos; }

bool has_adapters(Transformer& model) {
  const std::vector<NamedLinear> all = linears_of(model);
  return std::any_of(all.begin(), all.end(),
                     [](const NamedLinear& one) { return one.layer->adapter.present(); });
}

void check_adapters_of_experts(Transformer& model) {
  std::map<std::string, const LowRankAdapter*> first;  // by the name without the expert's number
  for (const auto& [name, layer] : linears_of(model)) {
    const size_t number = name.find(kExperts);
    if (number == name.npos) continue;
    const size_t begin = number + kExperts.size();
    const std::string part = name.substr(0, begin) + name.substr(name.find('.', begin));
    const LowRankAdapter& one = layer->adapter;
    const LowRankAdapter& other = *first.emplace(part, &one).first->second;
    const bool alike = one.down.shape == other.down.shape && one.scale == other.scale;
    if (!alike || one.magnitude.present())
      fail(
          ErrorKind::Unsupported,
          "{}: an adapter of an expert {}; expected adapters without DoRA and of the same rank and "
          "scale for all experts of a layer",
          name, alike ? "uses DoRA" : "differs from those of other experts");
  }
}

void untie(Transformer& model) {
  model.spec.head.tied = model.head.spec.tied = false;
  model.head.output.weight = model.token_embedding;
  model.head.output.weight.role = Role::matrix;
}

void add_alternative(Transformer& model, const Transformer& adapted) {
  check(!has_adapters(model),
        "adapters: the base has an adapter already; expected a base without adapters");
  Transformer other = adapted;
  check_shared(model, other);
  const std::vector<NamedLinear> layers = linears_of(model), its = linears_of(other);
  for (size_t i = 0; i < layers.size(); ++i)
    layers[i].layer->alternatives.push_back(its[i].layer->adapter);
}

void merge_adapters(Transformer& model) {
  for (const auto& [name, layer] : linears_of(model)) {
    if (!layer->adapter.present()) continue;
    layer->weight.value = layer->adapter.merged(layer->weight);
    layer->weight.packed = {};
    layer->adapter = {};
  }
}

}  // namespace fovea::model
