#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unicode/pattern.h"

namespace fovea::model {

constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr const char* kAdapterTensors = "adapter_model.safetensors";
// Prefix of the names of tensors in a file of PEFT.
constexpr const char* kPeftPrefix = "base_model.model.";

// adapter_config.json of PEFT, for adapters of type LORA. Modules are named as in the base model:
// "model.layers.0.self_attn.q_proj".
class PeftConfig {
 public:
  // Reads the file of a folder. Throws BadFile if a value is malformed, and Unsupported, naming the
  // key, for methods that fovea does not have.
  explicit PeftConfig(const std::string& folder);

  const std::string& path() const { return path_; }
  const std::string& base() const { return base_; }  // base_model_name_or_path
  bool rslora() const { return rslora_; }
  bool dora() const { return dora_; }
  float dropout() const { return dropout_; }

  // Return the rank of a module's adapter, and its scale, alpha / rank or alpha / sqrt(rank).
  int64_t rank_of(const std::string& module) const;
  float scale_of(const std::string& module) const;

  // Returns whether the module has an adapter, by target_modules, exclude_modules and
  // layers_to_transform.
  bool targets(const std::string& module) const;
  // Returns whether a parameter has an adapter of its own (target_parameters).
  bool targets_parameter(const std::string& name) const;
  // The modules that are trained as a whole (modules_to_save), and whether a module is one of them.
  const std::vector<std::string>& saved() const { return saved_; }
  bool saves(const std::string& module) const;
  // Returns the tokens whose rows of an embedding are trained (trainable_token_indices). Throws
  // BadFile if there are none for this module.
  std::vector<int64_t> trained_tokens(const std::string& module) const;
  // Returns whether a change of one of two tied matrices is one of both (ensure_weight_tying).
  bool ensures_tying() const { return ensures_tying_; }

 private:
  // Names of modules: a regular expression that matches the complete name, or the ends of names.
  struct Modules {
    std::vector<std::string> names = {};
    std::optional<text::Pattern> expression = {};
    bool all = false;
    bool contains(const std::string& module) const;
  };
  // Values by a regular expression of the end of a module's name.
  template <class T>
  struct ByPattern {
    std::map<std::string, T> names;  // of modules, or their last segments
    std::vector<std::pair<text::Pattern, T>> patterns;
  };

  Modules modules(const char* key) const;
  template <class T>
  ByPattern<T> by_pattern(const char* key) const;
  template <class T>
  T value_of(const ByPattern<T>& patterns, const char* key, const std::string& module,
             T otherwise) const;
  std::vector<std::string> strings(const char* key) const;
  void read_layers();
  bool in_layers(const std::string& module) const;
  void refuse_other_methods() const;

  std::string path_, base_;
  nlohmann::json json_;
  int64_t rank_ = 0;
  double alpha_ = 0;
  float dropout_ = 0;
  bool rslora_ = false, dora_ = false, ensures_tying_ = false;
  Modules target_, exclude_;
  ByPattern<int64_t> ranks_;
  ByPattern<double> alphas_;
  std::vector<int64_t> layers_;              // empty = all
  std::vector<std::string> layers_pattern_;  // names of the lists of layers; empty = any
  std::vector<std::string> saved_, parameters_;
};

// Returns the parts of a text between separators: "a.b" -> "a", "b".
std::vector<std::string> segments_of(const std::string& text, char separator);

// Returns whether the folder has an adapter of PEFT instead of a model.
bool holds_adapter(const std::string& folder);

// Returns the module of one of a list's names: the name itself, or a module that ends in "." and
// the name, as PEFT matches target_modules.
bool names_module(const std::string& name, const std::string& module);

}  // namespace fovea::model
