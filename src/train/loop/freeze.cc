#include "loop/freeze.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/fields.h"

namespace fovea::train {
namespace {

std::optional<int64_t> number_in(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number >= 0 ? std::optional(number) : std::nullopt;
}

// Reads "3" or "0-5".
std::optional<Interval> layers_in(const std::string& item) {
  const size_t dash = item.find('-');
  const auto first = number_in(std::string_view(item).substr(0, dash));
  const auto last = dash == item.npos ? first : number_in(std::string_view(item).substr(dash + 1));
  if (!first || !last) return std::nullopt;
  return Interval{*first, *last + 1};
}

// Returns the number of the layer of a parameter, such as 3 of "decoder.3.ffn.up.weight".
std::optional<int64_t> layer_of(const std::string& name) {
  if (!name.starts_with("encoder.") && !name.starts_with("decoder.")) return std::nullopt;
  const size_t begin = name.find('.') + 1;
  return number_in(std::string_view(name).substr(begin, name.find('.', begin) - begin));
}

constexpr const char* kLogitBias = "head.output.bias";

// A parameter and its names.
struct Named {
  model::Parameter* parameter;
  std::vector<std::string> names;  // in the model, and of the tensor in the file
};

std::vector<Named> named_parameters(model::Transformer& model, const model::Family& family) {
  std::map<std::string, std::string> in_file;
  for (const model::FileTensor& tensor : model::file_tensors(family, model))
    for (const std::string& part : tensor.parts) in_file[part] = tensor.name;
  std::vector<Named> all;
  for (const auto& [name, parameter] : model::parameters_of(model))
    all.push_back({parameter, {name, in_file[name]}});
  return all;
}

bool freeze_layers(const std::vector<Named>& all, const Interval& layers) {
  std::vector<bool> met(static_cast<size_t>(std::max<int64_t>(0, layers.end - layers.begin)));
  for (const Named& each : all) {
    const auto layer = layer_of(each.names[0]);
    if (!layer || *layer < layers.begin || *layer >= layers.end) continue;
    each.parameter->trainable = false;
    met[static_cast<size_t>(*layer - layers.begin)] = true;
  }
  return !met.empty() && std::all_of(met.begin(), met.end(), [](bool there) { return there; });
}

bool freeze_named(const std::vector<Named>& all, const std::string& glob) {
  bool met = false;
  for (const Named& each : all) {
    const auto fits = [&](const std::string& name) {
      return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
    };
    if (std::none_of(each.names.begin(), each.names.end(), fits)) continue;
    each.parameter->trainable = false;
    met = true;
  }
  return met;
}

}  // namespace

void freeze_buffers(model::Transformer& model, const model::Family& family) {
  std::set<std::string> buffers;
  for (const model::FileTensor& tensor : model::file_tensors(family, model))
    if (tensor.stored == model::Stored::batched &&
        tensor.parts == std::vector<std::string>{kLogitBias})
      buffers.insert(kLogitBias);
  for (const auto& [name, parameter] : model::parameters_of(model))
    if (buffers.contains(name)) parameter->trainable = false;
}

void freeze(model::Transformer& model, const model::Family& family,
            const std::vector<std::string>& items) {
  if (items.empty()) return;
  const std::vector<Named> all = named_parameters(model, family);
  int64_t last = 0;
  for (const Named& each : all) last = std::max(last, layer_of(each.names[0]).value_or(0));
  for (const std::string& item : items) {
    const auto layers = layers_in(item);
    const bool met = layers ? freeze_layers(all, *layers) : freeze_named(all, item);
    check_field(met, "freeze",
                "the model has no {} {}; expected layers from 0 to {}, such as 0-{}, or names of "
                "parameters, such as {}, where * stands for any characters",
                layers ? "layers" : "parameter named", item, last, last, all[0].names[0]);
  }
  const bool trains = std::any_of(all.begin(), all.end(),
                                  [](const Named& each) { return each.parameter->trainable; });
  check_field(trains, "freeze", "no parameter is left to train; expected fewer items");
}

}  // namespace fovea::train
