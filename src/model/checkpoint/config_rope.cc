// Rotary positions and windows in config.json, in the spellings of transformers before and since
// version 5.

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/math.h"
#include "checkpoint/config.h"
#include "fovea/core/excerpt.h"

namespace fovea::model {
namespace {

struct ScalingName {
  const char* name;
  RotaryScaling scaling;
};
constexpr ScalingName kScalings[] = {
    {"default", RotaryScaling::none},    {"linear", RotaryScaling::linear},
    {"dynamic", RotaryScaling::dynamic}, {"llama3", RotaryScaling::llama3},
    {"yarn", RotaryScaling::yarn},       {"longrope", RotaryScaling::longrope},
    {"su", RotaryScaling::longrope}};

constexpr float kMostStretch = 1024;  // limit of the factor by which a file extends a context

double short_number(float value) { return std::stod(fmt::format("{}", value)); }

// Calls field(key, number) for the factor and the other numbers of the kind of scaling.
template <class Field>
void scaling_fields(RotarySpec& s, Field&& field) {
  field("factor", s.factor);
  if (s.scaling == RotaryScaling::llama3) {
    field("low_freq_factor", s.low_frequency);
    field("high_freq_factor", s.high_frequency);
  } else if (s.scaling == RotaryScaling::yarn) {
    field("beta_fast", s.fast);
    field("beta_slow", s.slow);
  }
  if (s.scaling == RotaryScaling::yarn || s.scaling == RotaryScaling::longrope)
    field("attention_factor", s.attention_factor);
}

RotaryScaling scaling_named(const std::string& name, const std::string& where) {
  for (const auto& [known, scaling] : kScalings)
    if (name == known) return scaling;
  fail(ErrorKind::Unsupported,
       "{}.rope_type is \"{}\"; expected default, linear, dynamic, llama3, yarn or longrope", where,
       excerpt(name));
}

// The factor of attention scores' scale for a multiple of YaRN's formula (DeepSeek-AI 2024).
float yarn_factor(float factor, float multiple) {
  return factor <= 1 ? 1 : 0.1f * multiple * math::log(factor) + 1;
}

// Reads the numbers of an object of rotary parameters. `where` is its path in the file.
class RopeNumbers {
 public:
  RopeNumbers(const nlohmann::json& parameters, std::string file, std::string where)
      : parameters_(parameters), file_(std::move(file)), where_(std::move(where)) {}

  void operator()(const char* name, float& field) {
    const nlohmann::json value = found(name);
    if (value.is_null()) return;
    if (!value.is_number() || !(value >= 0.0 && value <= 1e9)) refuse(name, value, "a number");
    field = value.get<float>();
  }
  void operator()(const char* name, std::vector<float>& field) {
    const nlohmann::json values = found(name);
    if (values.is_null()) return;
    if (!values.is_array()) refuse(name, values, "a list of numbers");
    for (const auto& item : values) {
      if (!item.is_number()) refuse(name, item, "a number");
      field.push_back(item.get<float>());
    }
  }

  std::set<std::string> known = {"rope_type", "type", "original_max_position_embeddings"};

 private:
  nlohmann::json found(const char* name) {
    known.insert(name);
    const auto at = parameters_.find(name);
    return at == parameters_.end() ? nlohmann::json() : *at;
  }
  [[noreturn]] void refuse(const char* name, const nlohmann::json& value,
                           const char* expected) const {
    fail(ErrorKind::BadFile, "{}: {}.{} is {}; expected {}", file_, where_, name, brief(value),
         expected);
  }

  const nlohmann::json& parameters_;
  std::string file_, where_;
};

// A dynamic scaling with alpha is a larger theta, the same for texts of any length. Returns whether
// there is one.
bool raise_theta(RotarySpec& s, RopeNumbers& numbers, int64_t head_width) {
  float alpha = 0;
  if (head_width > 2) numbers("alpha", alpha);
  if (alpha == 0) return false;
  const auto width = static_cast<float>(head_width);
  s.theta *= math::pow(alpha, width / (width - 2));
  s.scaling = RotaryScaling::none;
  return true;
}

nlohmann::ordered_json written_scaling(RotarySpec s, bool with_theta, bool mscales = false) {
  nlohmann::ordered_json json;
  for (const auto& [name, scaling] : kScalings)
    if (scaling == s.scaling && !json.contains("rope_type")) json["rope_type"] = name;
  if (with_theta) {
    json["rope_theta"] = short_number(s.theta);
    if (s.share != 1) json["partial_rotary_factor"] = short_number(s.share);
  }
  if (s.query_growth > 0) json["llama_4_scaling_beta"] = short_number(s.query_growth);
  if (s.scaling == RotaryScaling::none) return json;
  scaling_fields(s, [&](const char* key, float value) {
    if (value != 0) json[key] = short_number(value);
  });
  if (!s.whole_pairs) json["truncate"] = false;
  if (s.scaling != RotaryScaling::linear && s.scaling != RotaryScaling::dynamic)
    json["original_max_position_embeddings"] = s.original_context;
  if (s.scaling == RotaryScaling::longrope && mscales) {
    if (s.attention_factor == 0)
      fail(ErrorKind::Unsupported, "the factor of cos and sin is 0; expected that of the file");
    json.erase("attention_factor");
    json["short_mscale"] = json["long_mscale"] = short_number(s.attention_factor);
  }
  if (s.scaling == RotaryScaling::longrope) {
    for (const float f : s.short_factors) json["short_factor"].push_back(short_number(f));
    for (const float f : s.long_factors) json["long_factor"].push_back(short_number(f));
  }
  return json;
}

}  // namespace

RotarySpec Config::rope_from(const nlohmann::json& parameters, const std::string& key,
                             const RopeDefaults& defaults, float theta, float share) {
  RotarySpec s;
  s.theta = theta;
  s.share = share;
  if (!parameters.is_object()) refuse(key.c_str(), parameters, "an object");
  RopeNumbers numbers(parameters, name_, key);
  const char* kind_key = parameters.contains("rope_type") ? "rope_type" : "type";
  const auto kind = parameters.find(kind_key);
  const bool says = kind != parameters.end() && !kind->is_null();
  if (says && !kind->is_string()) refuse((key + "." + kind_key).c_str(), *kind, "a name");
  const std::string name = says ? kind->get<std::string>() : "default";
  s.scaling = scaling_named(name, name_ + ": " + key);
  numbers("rope_theta", s.theta);
  numbers("partial_rotary_factor", s.share);
  if (defaults.query_growth) {
    numbers("llama_4_scaling_beta", s.query_growth);
    numbers.known.insert("max_position_embeddings");
  }
  if (s.scaling == RotaryScaling::dynamic && raise_theta(s, numbers, defaults.alpha_width))
    return s;
  if (s.scaling == RotaryScaling::longrope) s.factor = 0;  // rope() computes it from the contexts
  scaling_fields(s, [&](const char* field, float& value) { numbers(field, value); });
  float original = 0;
  if (s.scaling != RotaryScaling::none) {
    numbers("original_max_position_embeddings", original);
    s.original_context = static_cast<int64_t>(original);
  }
  if (s.scaling == RotaryScaling::longrope) {
    numbers("short_factor", s.short_factors);
    numbers("long_factor", s.long_factors);
  }
  if (s.scaling == RotaryScaling::longrope && defaults.mscales) {
    float long_texts = 0;
    numbers("short_mscale", s.attention_factor);
    numbers("long_mscale", long_texts);
    if (s.attention_factor == 0 || long_texts != s.attention_factor)
      fail(ErrorKind::Unsupported,
           "{}: {}.long_mscale is {}; expected short_mscale, and both given", name_, key,
           long_texts);
  }
  if (s.scaling == RotaryScaling::yarn) {
    float mscale = 0, all = 0;
    numbers("mscale", mscale);
    numbers("mscale_all_dim", all);
    if (s.attention_factor == 0 && mscale != 0 && all != 0)
      s.attention_factor = yarn_factor(s.factor, mscale) / yarn_factor(s.factor, all);
    s.whole_pairs = parameters.value("truncate", nlohmann::json()) != false;
  }
  for (const auto& [other, value] : parameters.items()) {
    const bool truncates = s.scaling == RotaryScaling::yarn && other == "truncate";
    // Images have three positions, each for some of the pairs; in texts, the three are equal.
    const bool of_images = other == "mrope_section" || other == "mrope_interleaved";
    const bool harmless = (truncates && value.is_boolean()) || of_images ||
                          (s.scaling == RotaryScaling::none && other == "factor");
    if (numbers.known.contains(other) || harmless || value.is_null()) continue;
    fail(ErrorKind::Unsupported, "{}: {}.{} is not known for rope_type {}; expected no such key",
         name_, key, excerpt(other), name);
  }
  return s;
}

void Config::write_rope(const RotarySpec& field, const RopeDefaults& defaults) {
  const auto full = written_scaling(field, true, defaults.mscales);
  if (defaults.by_layer_type) {
    RotarySpec sliding;
    sliding.theta = field.local_theta;
    return write("rope_parameters",
                 {{"full_attention", full}, {"sliding_attention", written_scaling(sliding, true)}});
  }
  write("rope_parameters", full);
  write("rope_theta", short_number(field.theta));
  if (field.share != 1) write("partial_rotary_factor", short_number(field.share));
  if (field.scaling != RotaryScaling::none)
    write("rope_scaling", written_scaling(field, false, defaults.mscales));
}

// In transformers, rope_theta and partial_rotary_factor of the file apply where rope_parameters
// lacks them.
void Config::read_rope(RotarySpec& field, const RopeDefaults& defaults) {
  const float theta = defaults.theta, local = field.local_theta, share = field.share;
  const nlohmann::json scaling = value("rope_scaling"), parameters = value("rope_parameters");
  if (!scaling.is_null() && !scaling.is_object()) refuse("rope_scaling", scaling, "an object");
  const auto with_root = [&](nlohmann::json part, std::initializer_list<const char*> keys) {
    if (part.is_null()) part = nlohmann::json::object();
    for (const char* key : keys)
      if (const auto at = value(key); part.is_object() && !at.is_null() && !part.contains(key))
        part[key] = at;
    return part;
  };
  const bool old = parameters.is_null();
  if (old || !defaults.by_layer_type) {
    field =
        rope_from(with_root(old ? scaling : parameters, {"rope_theta", "partial_rotary_factor"}),
                  old ? "rope_scaling" : "rope_parameters", defaults, theta, share);
    field.local_theta = local;
    return;
  }
  // transformers ignores parameters beside those of the types, so alone they apply to no layer.
  const bool flat = parameters.is_object() && !parameters.empty() &&
                    !parameters.contains("full_attention") &&
                    !parameters.contains("sliding_attention");
  if (!parameters.is_object() || flat)
    refuse("rope_parameters", parameters, "an object with full_attention and sliding_attention");
  constexpr const char* kSliding = "rope_parameters.sliding_attention";
  const RotarySpec sliding = rope_from(
      with_root(parameters.value("sliding_attention", nlohmann::json()), {"partial_rotary_factor"}),
      kSliding, defaults, local, share);
  if (sliding.scaling != RotaryScaling::none)
    fail(ErrorKind::Unsupported, "{}: {} scales positions; expected rope_type default", name_,
         kSliding);
  field = rope_from(with_root(parameters.value("full_attention", nlohmann::json()),
                              {"rope_theta", "partial_rotary_factor"}),
                    "rope_parameters.full_attention", defaults, theta, share);
  field.local_theta = sliding.theta;
}

// With dynamic scaling, max_position_embeddings is the original context, and the model's context is
// the original context times the factor.
void Config::rope(int64_t& context, RotarySpec& field, const RopeDefaults& defaults) {
  constexpr const char* kContext = "max_position_embeddings";
  if (!reading_) {
    write(kContext, field.scaling == RotaryScaling::dynamic ? field.original_context : context);
    return write_rope(field, defaults);
  }
  read_rope(field, defaults);
  (*this)(kContext, context, defaults.context);
  const auto trained = static_cast<float>(context);
  if (field.scaling == RotaryScaling::dynamic) {
    field.original_context = context;
    context = static_cast<int64_t>(trained * std::clamp(field.factor, 1.0f, kMostStretch));
  }
  if (field.scaling == RotaryScaling::longrope) {
    if (defaults.original_context > 0) field.original_context = defaults.original_context;
    if (field.original_context == 0) field.original_context = context;
    if (field.factor == 0) field.factor = trained / static_cast<float>(field.original_context);
  }
}

void Config::layer_types(StackSpec& stack, int64_t window, const std::vector<bool>& pattern) {
  auto& windows = stack.attention.windows;
  if (!reading_) {
    nlohmann::ordered_json types = nlohmann::ordered_json::array();
    for (int64_t i = 0; i < stack.layers; ++i) {
      const bool local = !windows.empty() && windows[static_cast<size_t>(i)] > 0;
      types.push_back(local ? "sliding_attention" : "full_attention");
    }
    return write("layer_types", types);
  }
  windows.clear();
  const nlohmann::json types = value("layer_types");
  if (types.is_null()) {
    for (int64_t i = 0; i < stack.layers && !pattern.empty(); ++i)
      windows.push_back(pattern[static_cast<size_t>(i) % pattern.size()] ? window : 0);
    return;
  }
  if (!types.is_array() || std::ssize(types) != stack.layers)
    refuse("layer_types", types, fmt::format("a list of {} names", stack.layers));
  for (const auto& type : types) {
    if (type != "full_attention" && type != "sliding_attention")
      refuse("layer_types", type, "full_attention or sliding_attention");
    windows.push_back(type == "sliding_attention" ? window : 0);
  }
}

}  // namespace fovea::model
