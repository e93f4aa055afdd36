#include "loading/nearest_family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "families/registry.h"
#include "fovea/core/excerpt.h"
#include "loading/loading.h"
#include "safetensors/safetensors.h"

namespace fovea::model {
namespace {

using NameSet = std::set<std::string>;

// Replaces the numbers of layers and experts: h.0.mlp.w1 -> h.{i}.mlp.w1
std::string pattern_of(const std::string& name) {
  std::string pattern;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    if (begin > 0) pattern += '.';
    pattern += number ? "{i}" : part;
    begin = end + 1;
  }
  return pattern;
}

// The names without a first part that most of them have, such as "model.".
NameSet without_prefix(const NameSet& names) {
  std::map<std::string, size_t> prefixes;
  for (const std::string& name : names) ++prefixes[name.substr(0, name.find('.') + 1)];
  const auto most =
      std::ranges::max_element(prefixes, {}, [](const auto& each) { return each.second; });
  if (most == prefixes.end() || 2 * most->second <= names.size()) return names;
  NameSet bare;
  for (const std::string& name : names)
    bare.insert(name.starts_with(most->first) ? name.substr(most->first.size()) : name);
  return bare;
}

// The number of names that the family's rules have, with or without its prefix.
int64_t known_names(const Family& family, const NameSet& names) {
  NameSet known;
  const std::string prefix = family.prefix;
  for (const Names* rules : {&family.names, &family.names_in_memory})
    for (const std::string& name : names_in_file(*rules)) {
      known.insert(name);
      if (!prefix.empty() && name.starts_with(prefix)) known.insert(name.substr(prefix.size()));
    }
  return std::ranges::count_if(names,
                               [&](const std::string& name) { return known.contains(name); });
}

// The class of the family for the same purpose: CohereForCausalLM -> LlamaForCausalLM.
std::string class_like(const nlohmann::json& config, const Family& family) {
  const auto purpose = [](const std::string& name) {
    const size_t at = name.rfind("For");
    return at == name.npos ? std::string("Model") : name.substr(at);
  };
  const auto given = config.find("architectures");
  if (given != config.end() && given->is_array() && !given->empty() && given->front().is_string())
    for (const Architecture& each : family.architectures)
      if (purpose(each.name) == purpose(given->front().get<std::string>())) return each.name;
  return family.architectures.front().name;
}

// Opens the files as those of the family, and returns what does not fit.
std::vector<std::string> differences(const std::string& folder, const Family& family,
                                     nlohmann::json config,
                                     const std::shared_ptr<const TensorSource>& tensors) {
  const std::string name = folder + "/config.json";
  std::vector<std::string> lines;
  config["model_type"] = family.model_type;
  config["architectures"] = {class_like(config, family)};
  try {
    std::vector<std::string> refused;
    Spec spec;
    Config reader(config, name, &refused);
    describe(reader, family, spec);
    for (std::string& key : refused) {
      config.erase(key);
      key = excerpt(key, 40);
    }
    if (!refused.empty())
      lines.push_back(fmt::format("{}: {} has no such keys or values: {}", name, family.model_type,
                                  fmt::join(refused, ", ")));
    load_model(family, config, name, tensors, {.weights = Weights::in_file}, folder);
    if (refused.empty()) lines.push_back(fmt::format("{}: has its keys and tensors", folder));
  } catch (const Error& error) {
    lines.emplace_back(error.what());
  }
  return lines;
}

}  // namespace

std::vector<std::string> compare_with_families(const std::string& folder) {
  const std::string path = folder + "/config.json";
  nlohmann::json config;
  std::shared_ptr<const TensorSource> tensors;
  try {
    if (!is_file(path)) return {};
    config = read_json(path);
    const auto type = find_string(config, "model_type", path);
    if (!type || std::ranges::any_of(
                     families(), [&](const Family* family) { return family->model_type == *type; }))
      return {};
    tensors = std::make_shared<SafeTensors>(SafeTensors::open_model(folder));
  } catch (const Error&) {
    return {};  // opening the model has named the fault
  }
  NameSet names;
  for (const StoredTensor& each : tensors->stored()) names.insert(pattern_of(each.name));
  names = without_prefix(names);
  const auto nearest = std::ranges::max_element(
      families(), {}, [&](const Family* family) { return known_names(*family, names); });
  const int64_t known = known_names(**nearest, names);
  if (known == 0) return {"none: no family has a tensor of these names"};
  std::vector<std::string> lines = {
      fmt::format("{}: has {} of {} names of tensors (src/model/families)", (*nearest)->model_type,
                  known, names.size())};
  for (std::string& line : differences(folder, **nearest, std::move(config), tensors))
    lines.push_back(std::move(line));
  return lines;
}

}  // namespace fovea::model
