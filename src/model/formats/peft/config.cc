#include "formats/peft/config.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/error.h"
#include "base/files.h"
#include "base/folder_links.h"
#include "base/json.h"
#include "fovea/core/excerpt.h"

namespace fovea::model {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostRank = 1 << 20;
constexpr double kMostAlpha = 1e9;
constexpr size_t kMostPatterns = 256;  // each is tried on each module

// Returns whether a pattern of PEFT is the name of a module. Its dots are taken as dots.
bool is_module_name(std::string_view pattern) {
  return std::all_of(pattern.begin(), pattern.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

// Keys that do not affect the arithmetic of a trained adapter.
bool is_indifferent(const std::string& key) {
  static const std::vector<std::string> keys = {
      "auto_mapping",      "corda_config",   "eva_config",     "inference_mode",
      "loftq_config",      "lora_ga_config", "megatron_core",  "peft_version",
      "qalora_group_size", "revision",       "runtime_config", "task_type"};
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool is_read(const std::string& key) {
  static const std::vector<std::string> keys = {"alpha_pattern",
                                                "base_model_name_or_path",
                                                "bias",
                                                "ensure_weight_tying",
                                                "exclude_modules",
                                                "fan_in_fan_out",
                                                "init_lora_weights",
                                                "layers_pattern",
                                                "layers_to_transform",
                                                "lora_alpha",
                                                "lora_dropout",
                                                "modules_to_save",
                                                "peft_type",
                                                "r",
                                                "rank_pattern",
                                                "target_modules",
                                                "target_parameters",
                                                "trainable_token_indices",
                                                "use_dora",
                                                "use_rslora"};
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// Returns whether a value has no effect: null, false, "" or an empty list or object.
bool is_empty(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_string()) return value.get<std::string>().empty();
  return value.is_null() || (value.is_structured() && value.empty());
}

bool is_complete_match(const text::Pattern& pattern, const std::string& text) {
  std::vector<text::Stretch> stretches;
  pattern.find(text, stretches);
  return stretches.size() == 1 && stretches[0].matches && stretches[0].end == text.size();
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::vector<std::string> segments_of(const std::string& text, char separator) {
  std::vector<std::string> segments(1);
  for (const char c : text) {
    if (c == separator)
      segments.emplace_back();
    else
      segments.back() += c;
  }
  return segments;
}

bool holds_adapter(const std::string& folder) {
  return is_file(folder + "/" + kAdapterConfig) && !is_file(folder + "/model.safetensors") &&
         !is_file(folder + "/model.safetensors.index.json");
}

bool names_module(const std::string& name, const std::string& module) {
  return module == name || module.ends_with("." + name);
}

PeftConfig::PeftConfig(const std::string& folder)
    : path_(folder + "/" + kAdapterConfig), json_(read_json(path_)) {
  refuse_links_out(folder);
  if (!json_.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected keys and values in braces", path_);
  if (const std::string type = get_string(json_, "peft_type", path_); type != "LORA")
    fail(ErrorKind::Unsupported, "{}: peft_type is {}; expected LORA", path_, brief(Json(type)));
  refuse_other_methods();
  base_ = find_string(json_, "base_model_name_or_path", path_).value_or("");
  rank_ = get_int(json_, "r", path_, 1, kMostRank);
  alpha_ = find_float(json_, "lora_alpha", path_, -kMostAlpha, kMostAlpha).value_or(8);
  dropout_ = static_cast<float>(find_float(json_, "lora_dropout", path_, 0, 1).value_or(0));
  rslora_ = find_bool(json_, "use_rslora", path_).value_or(false);
  dora_ = find_bool(json_, "use_dora", path_).value_or(false);
  target_ = modules("target_modules");
  exclude_ = modules("exclude_modules");
  ranks_ = by_pattern<int64_t>("rank_pattern");
  alphas_ = by_pattern<double>("alpha_pattern");
  saved_ = strings("modules_to_save");
  parameters_ = strings("target_parameters");
  ensures_tying_ = find_bool(json_, "ensure_weight_tying", path_).value_or(false);
  read_layers();
}

void PeftConfig::refuse_other_methods() const {
  for (const auto& [key, value] : json_.items()) {
    if (is_read(key) || is_indifferent(key) || is_empty(value)) continue;
    fail(ErrorKind::Unsupported, "{}: {} is {}; expected no value: fovea does not have this method",
         path_, key, brief(value));
  }
  if (const std::string bias = find_string(json_, "bias", path_).value_or("none"); bias != "none")
    fail(ErrorKind::Unsupported, "{}: bias is {}; expected none", path_, brief(Json(bias)));
  const Json start = json_.value("init_lora_weights", Json());
  if (!start.is_string()) return;
  // Other methods of initialisation change the weights of the base.
  const auto name = start.get<std::string>();
  if (name != "gaussian" && name != "eva" && name != "orthogonal")
    fail(ErrorKind::Unsupported,
         "{}: init_lora_weights is {}; expected true, false, gaussian, eva or orthogonal, which "
         "leave the base as it is",
         path_, brief(start));
}

std::vector<std::string> PeftConfig::strings(const char* key) const {
  const Json value = json_.value(key, Json());
  if (value.is_null()) return {};
  std::vector<std::string> all;
  for (const Json& each : value.is_array() ? value : Json::array({value})) {
    if (!each.is_string())
      fail(ErrorKind::BadFile, "{}: {} contains {}; expected strings", path_, key, brief(each));
    all.push_back(each);
  }
  return all;
}

void PeftConfig::read_layers() {
  layers_pattern_ = strings("layers_pattern");
  const Json given = json_.value("layers_to_transform", Json());
  if (given.is_null()) return;
  for (const Json& each : given.is_array() ? given : Json::array({given})) {
    if (!each.is_number_integer() || each < 0)
      fail(ErrorKind::BadFile, "{}: layers_to_transform contains {}; expected numbers of layers",
           path_, brief(each));
    layers_.push_back(each);
  }
}

PeftConfig::Modules PeftConfig::modules(const char* key) const {
  const Json value = json_.value(key, Json());
  if (!value.is_string()) return {.names = strings(key)};
  const auto text = value.get<std::string>();
  if (text == "all-linear") return {.all = true};
  return {.expression = text::Pattern::regex("\\A(?:" + text + ")\\z", path_ + ": " + key)};
}

template <class T>
PeftConfig::ByPattern<T> PeftConfig::by_pattern(const char* key) const {
  const Json value = json_.value(key, Json());
  ByPattern<T> all;
  if (value.is_null()) return all;
  if (!value.is_object())
    fail(ErrorKind::BadFile, "{}: {} is {}; expected an object", path_, key, brief(value));
  constexpr T least = std::is_integral_v<T> ? T{1} : static_cast<T>(-kMostAlpha),
              most = std::is_integral_v<T> ? static_cast<T>(kMostRank) : static_cast<T>(kMostAlpha);
  for (const auto& [pattern, number] : value.items()) {
    const bool is_number = std::is_integral_v<T> ? number.is_number_integer() : number.is_number();
    if (!is_number || number < least || number > most)
      fail(ErrorKind::BadFile, "{}: {}: {} is {}; expected a number from {} to {}", path_, key,
           excerpt(pattern), brief(number), least, most);
    const T wanted = number.template get<T>();
    if (is_module_name(pattern)) {
      all.names.emplace(pattern, wanted);
      continue;
    }
    if (all.patterns.size() == kMostPatterns)
      fail(ErrorKind::BadFile, "{}: {} has more than {} regular expressions; expected names", path_,
           key, kMostPatterns);
    all.patterns.emplace_back(
        text::Pattern::regex("\\A(?:.*\\.)?(?:" + pattern + ")\\z", path_ + ": " + key), wanted);
  }
  return all;
}

// PEFT uses the first pattern of the file that matches; the order of keys is not known here.
template <class T>
T PeftConfig::value_of(const ByPattern<T>& patterns, const char* key, const std::string& module,
                       T otherwise) const {
  std::optional<T> found;
  const auto take = [&](T value) {
    if (found && *found != value)
      fail(ErrorKind::Unsupported, "{}: {}: several patterns match {}; expected one", path_, key,
           module);
    found = value;
  };
  for (size_t dot = 0; dot != module.npos; dot = module.find('.', dot + 1)) {
    const auto named = patterns.names.find(module.substr(dot == 0 ? 0 : dot + 1));
    if (named != patterns.names.end()) take(named->second);
  }
  for (const auto& [pattern, value] : patterns.patterns)
    if (is_complete_match(pattern, module)) take(value);
  return found.value_or(otherwise);
}

int64_t PeftConfig::rank_of(const std::string& module) const {
  return value_of(ranks_, "rank_pattern", module, rank_);
}

float PeftConfig::scale_of(const std::string& module) const {
  const auto rank = static_cast<double>(rank_of(module));
  const double alpha = value_of(alphas_, "alpha_pattern", module, alpha_);
  return static_cast<float>(alpha / (rslora_ ? std::sqrt(rank) : rank));
}

bool PeftConfig::Modules::contains(const std::string& module) const {
  if (all) return true;
  if (expression) return is_complete_match(*expression, module);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return names_module(name, module); });
}

// The number of a layer is the last number between two names: "model.layers.3.mlp".
bool PeftConfig::in_layers(const std::string& module) const {
  if (layers_.empty()) return true;
  const std::vector<std::string> segments = segments_of(module, '.');
  for (size_t i = segments.size(); i-- > 0;) {
    if (i + 1 == segments.size() || i == 0 || !is_number(segments[i])) continue;
    const bool listed =
        layers_pattern_.empty() || std::find(layers_pattern_.begin(), layers_pattern_.end(),
                                             segments[i - 1]) != layers_pattern_.end();
    if (!listed) continue;
    return std::find(layers_.begin(), layers_.end(), std::stoll(segments[i])) != layers_.end();
  }
  return false;
}

bool PeftConfig::targets(const std::string& module) const {
  return !exclude_.contains(module) && target_.contains(module) && in_layers(module);
}

bool PeftConfig::targets_parameter(const std::string& name) const {
  return std::any_of(parameters_.begin(), parameters_.end(),
                     [&](const std::string& target) { return names_module(target, name); });
}

// A list is of the input embedding; an object has lists by module.
std::vector<int64_t> PeftConfig::trained_tokens(const std::string& module) const {
  Json ids = json_.value("trainable_token_indices", Json());
  if (ids.is_object()) {
    const Json by_module = ids;
    for (const auto& [name, list] : by_module.items())
      if (names_module(name, module)) ids = list;
  }
  const auto is_id = [](const Json& id) { return id.is_number_integer() && id >= 0; };
  if (!ids.is_array() || !std::all_of(ids.begin(), ids.end(), is_id))
    fail(ErrorKind::BadFile,
         "{}: trainable_token_indices is {} for {}; expected a list of token ids", path_,
         brief(ids), module);
  return ids.get<std::vector<int64_t>>();
}

bool PeftConfig::saves(const std::string& module) const {
  // A saved module may have parts, such as classifier.dense.
  for (size_t end = module.size(); end != module.npos;) {
    const std::string_view whole = std::string_view(module).substr(0, end);
    if (std::any_of(saved_.begin(), saved_.end(),
                    [&](const std::string& name) { return whole.ends_with(name); }))
      return true;
    end = end == 0 ? module.npos : module.rfind('.', end - 1);
  }
  return false;
}

}  // namespace fovea::model
