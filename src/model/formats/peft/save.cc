#include "formats/peft/save.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "formats/peft/adapters.h"
#include "formats/peft/experts.h"
#include "loading/loader.h"
#include "safetensors/safetensors.h"
#include "transformer/adapters.h"

namespace fovea::model {
namespace {

using Json = nlohmann::json;

bool equal_bytes(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

// Returns the matrices one after another.   [r_i, C] -> [sum of r_i, C]
Tensor stacked(const std::vector<Tensor>& all) {
  int64_t rows = 0;
  for (const Tensor& one : all) rows += one.dim(0);
  const Tensor y = empty({rows, all[0].dim(1)});
  float* to = y.data_as<float>();
  for (const Tensor& one : all) to = std::copy_n(one.data_as<float>(), one.size(), to);
  return y;
}

// Returns B with the columns of part `part` of `parts` equal ones; the others are 0.
// [N, r] -> [N, parts r]
Tensor in_block(const Tensor& up, size_t part, size_t parts) {
  const int64_t rank = up.dim(1), width = rank * static_cast<int64_t>(parts);
  Tensor y = zeros({up.dim(0), width});
  for (int64_t row = 0; row < up.dim(0); ++row)
    std::copy_n(up.data_as<float>() + row * rank, rank,
                y.data_as<float>() + row * width + static_cast<int64_t>(part) * rank);
  return y;
}

// The tensors of the trainable parameters that do not belong to adapters.
std::map<std::string, Tensor> saved_modules(Transformer& model, const Family& family) {
  // PEFT replaces only one of two modules that share a matrix, so both are stored.
  if (model.spec.head.tied && model.token_embedding.trainable &&
      !name_of_head(model.spec, family).empty()) {
    const auto untied = std::make_unique<Transformer>(model);
    untie(*untied);
    return saved_modules(*untied, family);
  }
  std::map<std::string, const Parameter*> trained;
  for (const auto& [name, parameter] : parameters_of(model))
    if (parameter->trainable && !is_of_adapter(parameter->role)) trained[name] = parameter;
  std::map<std::string, Tensor> tensors;
  for (const FileTensor& tensor : file_tensors(family, model)) {
    std::vector<Tensor> parts;
    for (const std::string& part : tensor.parts)
      if (const auto at = trained.find(part); at != trained.end())
        parts.push_back(at->second->value.detach());
    if (parts.empty()) continue;
    check(parts.size() == tensor.parts.size(),
          "{}: only some of its parts are trained; expected all of them or none", tensor.name);
    tensors[tensor.name] = to_file(tensor, parts);
  }
  return tensors;
}

std::string module_of(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }
std::string last_name(const std::string& module) { return module.substr(module.rfind('.') + 1); }

// The name by which the config selects an adapter.
const std::string& target_of(const StoredAdapter& adapter) {
  return adapter.parameter.empty() ? adapter.module : adapter.parameter;
}

// Returns the last names of the modules if these select exactly the given ones among the model's
// matrices, else the complete names; null if there are none. With `parameters`, those of the
// parameters, with the names of their modules.
Json target_names(const std::vector<StoredAdapter>& adapters, Transformer& model,
                  const Family& family, bool parameters) {
  const auto end_of = [&](const std::string& name) {
    return parameters ? last_name(module_of(name)) + "." + last_name(name) : last_name(name);
  };
  std::set<std::string> ends, adapted;
  for (const StoredAdapter& adapter : adapters) {
    if (adapter.parameter.empty() == parameters) continue;
    ends.insert(end_of(target_of(adapter)));
    adapted.insert(target_of(adapter));
  }
  if (ends.empty()) return {};
  for (const FileTensor& tensor : parameters ? file_tensors(family, model, true)
                                             : module_tensors(family, model, ModuleNames::memory)) {
    const std::string name = parameters ? tensor.name : module_of(tensor.name);
    if (ends.contains(end_of(name)) && !adapted.contains(name)) return adapted;
  }
  return ends;
}

// Returns the name of a module of a decoder that is a part of a larger model.
std::string name_in_whole(const std::string& name, const std::string& decoder) {
  constexpr std::string_view kModel = "model.";
  if (decoder.empty() || !name.starts_with(kModel)) return name;
  return decoder + "." + name.substr(kModel.size());
}

// Returns target_modules of such a decoder, since other parts have modules with the same last
// names: an expression for last names, and complete names as they are in the whole.
Json targets_in_whole(const Json& targets, const std::string& decoder) {
  if (decoder.empty() || targets.is_null()) return targets;
  const std::vector<std::string> names = targets;
  if (names[0].find('.') == std::string::npos) {
    std::string expression;
    for (const char letter : decoder) expression += letter == '.' ? "\\." : std::string(1, letter);
    return fmt::format("{}\\..*\\.({})", expression, fmt::join(names, "|"));
  }
  Json whole = Json::array();
  for (const std::string& name : names) whole.push_back(name_in_whole(name, decoder));
  return whole;
}

// Returns a pattern by modules with their names in the whole.
Json pattern_in_whole(const Json& pattern, const std::string& decoder) {
  Json whole = Json::object();
  for (const auto& [name, value] : pattern.items()) whole[name_in_whole(name, decoder)] = value;
  return whole;
}

std::map<std::string, Tensor> tensors_in_whole(const std::map<std::string, Tensor>& tensors,
                                               const std::string& decoder) {
  std::map<std::string, Tensor> whole;
  const std::string prefix = kPeftPrefix;
  for (const auto& [name, tensor] : tensors)
    whole[prefix + name_in_whole(name.substr(prefix.size()), decoder)] = tensor;
  return whole;
}

Json number(double value) {
  if (value == std::round(value)) return static_cast<int64_t>(value);
  return value;
}

// Returns the values by module that differ from `usual`: by the last names if all modules of a
// name agree.
Json pattern_of(const std::vector<StoredAdapter>& adapters, double usual,
                const std::function<double(const StoredAdapter&)>& value_of) {
  std::map<std::string, std::set<double>> values;
  for (const StoredAdapter& adapter : adapters)
    values[last_name(target_of(adapter))].insert(value_of(adapter));
  Json pattern = Json::object();
  for (const StoredAdapter& adapter : adapters) {
    const double value = value_of(adapter);
    const std::string &name = target_of(adapter), last = last_name(name);
    if (value != usual) pattern[values[last].size() == 1 ? last : name] = number(value);
  }
  return pattern;
}

const char* task_type(const Spec& spec) {
  switch (spec.head.kind) {
    case HeadKind::language_model: break;
    case HeadKind::pooled: return "FEATURE_EXTRACTION";
    case HeadKind::sequence: return "SEQ_CLS";
    case HeadKind::token: return "TOKEN_CLS";
    case HeadKind::span: return "QUESTION_ANS";
  }
  if (!spec.decoder) return nullptr;
  return spec.encoder ? "SEQ_2_SEQ_LM" : "CAUSAL_LM";
}

Json config_of(const std::vector<StoredAdapter>& adapters,
               const std::map<std::string, Tensor>& saved, Transformer& model, const Family& family,
               const AdapterFacts& facts) {
  std::set<std::string> modules;
  for (const auto& [name, tensor] : saved) modules.insert(module_of(name));
  const char* task = task_type(model.spec);
  const auto rank = [](const StoredAdapter& one) { return static_cast<double>(one.rank); };
  const auto alpha = [&](const StoredAdapter& one) {
    return alpha_of(one.scale, one.rank, facts.rslora);
  };
  const auto is_parameter = [](const StoredAdapter& one) { return !one.parameter.empty(); };
  // PEFT refuses dropout for parameters.
  const bool drops = std::none_of(adapters.begin(), adapters.end(), is_parameter);
  const auto is_transposed = [](const StoredAdapter& one) { return one.transposed; };
  return {
      {"peft_type", "LORA"},
      {"task_type", task == nullptr ? Json() : Json(task)},
      {"base_model_name_or_path", facts.base},
      {"inference_mode", true},
      {"r", facts.rank},
      {"lora_alpha", number(facts.alpha)},
      {"lora_dropout", drops ? std::round(static_cast<double>(facts.dropout) * 1e6) / 1e6 : 0.0},
      {"use_rslora", facts.rslora},
      {"use_dora", static_cast<bool>(adapters.front().magnitude)},
      {"fan_in_fan_out", std::any_of(adapters.begin(), adapters.end(), is_transposed)},
      {"bias", "none"},
      {"init_lora_weights", true},
      {"target_modules",
       targets_in_whole(target_names(adapters, model, family, false), facts.decoder)},
      {"target_parameters", target_names(adapters, model, family, true)},
      {"exclude_modules", Json()},
      {"layers_to_transform", Json()},
      {"layers_pattern", Json()},
      {"rank_pattern", pattern_in_whole(pattern_of(adapters, static_cast<double>(facts.rank), rank),
                                        facts.decoder)},
      {"alpha_pattern", pattern_in_whole(pattern_of(adapters, facts.alpha, alpha), facts.decoder)},
      {"modules_to_save", modules.empty() ? Json() : Json(modules)}};
}

}  // namespace

std::vector<StoredAdapter> stored_adapters(Transformer& model, const Family& family) {
  std::vector<StoredAdapter> all = stored_parameters(family, model);
  const std::set<const Linear*> others = adapted_in_parameters(family, model);
  for (const AdapterModule& module : adapter_modules(family, model, ModuleNames::memory)) {
    const LowRankAdapter& first = module.layers[0]->adapter;
    if (!first.present() || others.contains(module.layers[0])) continue;
    std::vector<Tensor> downs, ups, magnitudes;
    bool shared = true;
    for (const Linear* layer : module.layers) {
      check(
          layer->adapter.present() && !layer->adapter.fixed && layer->adapter.scale == first.scale,
          "{}: the adapters of its layers differ; expected the same scale", module.name);
      downs.push_back(layer->adapter.down.value.detach());
      ups.push_back(layer->adapter.up.value.detach());
      if (first.magnitude.present()) magnitudes.push_back(layer->adapter.magnitude.value.detach());
      shared = shared && equal_bytes(downs[0], downs.back());
    }
    const bool experts = module.tensor.stored == Stored::stacked;
    const bool blocks = !experts && !shared;
    for (size_t i = 0; blocks && i < ups.size(); ++i) ups[i] = in_block(ups[i], i, ups.size());
    const Tensor down = experts  ? to_file(module.tensor, downs)
                        : shared ? downs[0]
                                 : stacked(downs);
    all.push_back({module.name, down, to_file(module.tensor, ups),
                   magnitudes.empty() ? Tensor() : to_file(module.tensor, magnitudes), first.scale,
                   module.transposed, down.dim(-2)});
  }
  return all;
}

double alpha_of(float scale, int64_t adapter_rank, bool rslora) {
  const auto rank = static_cast<double>(adapter_rank);
  const double alpha = static_cast<double>(scale) * (rslora ? std::sqrt(rank) : rank);
  return std::round(alpha * 1e4) / 1e4;
}

std::map<std::string, Tensor> adapter_tensors(Transformer& model, const Family& family) {
  std::map<std::string, Tensor> tensors;
  for (const StoredAdapter& adapter : stored_adapters(model, family)) {
    const std::string name = kPeftPrefix + adapter.module;
    tensors[name + ".lora_A.weight"] = adapter.down;
    tensors[name + ".lora_B.weight"] = adapter.up;
    if (adapter.magnitude) tensors[name + ".lora_magnitude_vector"] = adapter.magnitude;
  }
  for (const auto& [name, tensor] : saved_modules(model, family))
    tensors[kPeftPrefix + name] = tensor;
  return tensors;
}

namespace {

// Returns a copy whose trainable parameters are on the host. It shares the others.
Transformer with_adapter_on_host(const Transformer& given) {
  Transformer model = given;
  model.each([](const std::string&, Parameter& p) {
    if (p.trainable && !p.packed) p.value = p.value.to(cpu_device());
  });
  return model;
}

// Returns the files of an adapter besides its tensors.
std::map<std::string, std::string> description_of(Transformer& model, const Origin& origin,
                                                  const AdapterFacts& facts) {
  const Family& family = family_to_save(model.spec, origin);
  const std::vector<StoredAdapter> adapters = stored_adapters(model, family);
  check(!adapters.empty(), "adapter: the model has none; expected at least one");
  std::map<std::string, std::string> files;
  files[kAdapterConfig] =
      pretty(config_of(adapters, saved_modules(model, family), model, family, facts));
  if (model.spec.head.labels > 0) {
    Origin of_base = origin;
    of_base.quantization.reset();  // that of this run, not of the base's files
    files["config.json"] = config_json(model, of_base, std::nullopt);
  }
  return files;
}

}  // namespace

std::map<std::string, std::string> adapter_files(Transformer& given, const Origin& origin,
                                                 const AdapterFacts& facts) {
  Transformer model = with_adapter_on_host(given);
  std::map<std::string, std::string> files = description_of(model, origin, facts);
  const SafeTensorsImage image(
      tensors_in_whole(adapter_tensors(model, family_to_save(model.spec, origin)), facts.decoder));
  std::string& content = files[kAdapterTensors];
  for (const std::string_view piece : image.pieces()) content += piece;
  return files;
}

void save_adapter(const std::string& folder, Transformer& given, const Origin& origin,
                  const AdapterFacts& facts) {
  Transformer model = with_adapter_on_host(given);
  const auto files = description_of(model, origin, facts);
  write_safetensors(
      folder + "/" + kAdapterTensors,
      tensors_in_whole(adapter_tensors(model, family_to_save(model.spec, origin)), facts.decoder));
  for (const auto& [name, content] : files) write_file_atomically(folder + "/" + name, content);
}

}  // namespace fovea::model
