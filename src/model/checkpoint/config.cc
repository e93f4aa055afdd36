#include "checkpoint/config.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json.h"
#include "base/settings.h"
#include "fovea/core/excerpt.h"

namespace fovea::model {
namespace {

// The names that transformers uses for activations; the first name of an activation is written.
struct ActivationName {
  const char* name;
  Activation kind;
};
constexpr std::array<ActivationName, 12> kActivations = {
    {{"relu", Activation::relu},
     {"gelu", Activation::gelu},
     {"gelu_python", Activation::gelu},
     {"gelu_new", Activation::gelu_tanh},
     {"gelu_pytorch_tanh", Activation::gelu_tanh},
     {"gelu_fast", Activation::gelu_tanh},
     {"silu", Activation::silu},
     {"swish", Activation::silu},
     {"tanh", Activation::tanh},
     {"quick_gelu", Activation::quick_gelu},
     {"relu2", Activation::relu_squared},
     {"sigmoid", Activation::sigmoid}}};

constexpr int64_t kMost = int64_t{1} << 24;

}  // namespace

Config::Config(const nlohmann::json& json, std::string name, std::vector<std::string>* refused)
    : reading_(true), json_(&json), refused_(refused), name_(std::move(name)) {
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected keys and values in braces", name_);
}

const nlohmann::json* Config::find(const char* key) {
  known_.insert(key);
  const auto at = json_->find(key);
  return at == json_->end() || at->is_null() ? nullptr : &*at;
}

void Config::refuse(const char* key, const nlohmann::json& value,
                    const std::string& expected) const {
  fail(ErrorKind::BadFile, "{}: {} is {}; expected {}", name_, key, brief(value), expected);
}

void Config::operator()(const char* key, int64_t& field) {
  if (!reading_) return write(key, field);
  const auto* value = find(key);
  if (value == nullptr)
    fail(ErrorKind::BadFile, "{}: {} is missing; expected an integer", name_, key);
  if (!value->is_number_integer() || *value < 1 || *value > kMost) {
    refuse(key, *value, fmt::format("an integer from 1 to {}", kMost));
  }
  field = value->get<int64_t>();
}

void Config::operator()(const char* key, int64_t& field, int64_t absent) {
  if (!reading_) return write(key, field);
  if (find(key) == nullptr)
    field = absent;
  else
    (*this)(key, field);
}

void Config::operator()(const char* key, float& field, float absent, float most) {
  if (!reading_) return write(key, std::stod(fmt::format("{}", field)));
  const auto* value = find(key);
  if (value != nullptr && !(value->is_number() && *value >= 0.0 && *value <= most))
    refuse(key, *value, fmt::format("a number from 0 to {}", most));
  field = value == nullptr ? absent : value->get<float>();
}

void Config::operator()(const char* key, bool& field, bool absent) {
  if (!reading_) return write(key, field);
  const auto* value = find(key);
  if (value != nullptr && !value->is_boolean()) refuse(key, *value, "true or false");
  field = value == nullptr ? absent : value->get<bool>();
}

void Config::operator()(const char* key, std::vector<int64_t>& field) {
  if (!reading_) return write(key, field);
  field.clear();
  const auto* value = find(key);
  if (value == nullptr) return;
  if (!value->is_array()) refuse(key, *value, "a list of integers");
  for (const auto& item : *value) {
    if (!item.is_number_integer() || item.get<int64_t>() < 0 || item > kMost)
      refuse(key, *value, fmt::format("integers from 0 to {}", kMost));
    field.push_back(item.get<int64_t>());
  }
}

void Config::padding(Spec& spec, int64_t absent) {
  if (!reading_) {
    const bool none = spec.padding < 0;
    if (!none || absent >= 0)
      write("pad_token_id", none ? nlohmann::ordered_json() : nlohmann::ordered_json(spec.padding));
    return;
  }
  const nlohmann::json given = value("pad_token_id");
  const bool is_id = given.is_number_integer() && given.get<int64_t>() >= 0 && given <= kMost;
  spec.padding = is_id                                      ? given.get<int64_t>()
                 : given.is_null() && !says("pad_token_id") ? absent
                                                            : -1;
  // A null that this function would not write again is carried.
  if (spec.padding < 0 && absent < 0) known_.erase("pad_token_id");
}

nlohmann::json Config::value(const char* key) {
  const auto* found = reading_ ? find(key) : nullptr;
  return found == nullptr ? nlohmann::json() : *found;
}

nlohmann::ordered_json Config::carried() const {
  nlohmann::ordered_json carried = nlohmann::ordered_json::object();
  if (!reading_) return carried;
  for (const auto& [key, value] : json_->items()) {
    const bool names_code = key == "auto_map" || key == "custom_pipelines";  // which stays behind
    if (!known_.contains(key) && !names_code) carried[key] = value;
  }
  return carried;
}

void Config::operator()(const char* key, Activation& field, const char* absent) {
  if (!reading_) {  // several names may mean one function: the family's own one is written
    for (const auto& a : kActivations)
      if (a.kind == field && a.name == std::string_view(absent)) return write(key, a.name);
    for (const auto& a : kActivations)
      if (a.kind == field) return write(key, a.name);
    fail(ErrorKind::Unsupported, "{}: this activation has no name in config.json", key);
  }
  const auto* value = find(key);
  if (value != nullptr && !value->is_string()) refuse(key, *value, "the name of an activation");
  const std::string name = value == nullptr ? absent : value->get<std::string>();
  const auto at = std::find_if(kActivations.begin(), kActivations.end(),
                               [&](const auto& a) { return name == a.name; });
  if (at == kActivations.end()) {
    fail(
        ErrorKind::Unsupported,
        "{}: {} is \"{}\"; expected relu, relu2, gelu, gelu_new, quick_gelu, silu, tanh or sigmoid",
        name_, key, excerpt(name));
  }
  field = at->kind;
}

void Config::spec(const char* key, Spec& field) {
  if (!reading_) return write(key, nlohmann::ordered_json::parse(write_spec(field)));
  const auto* value = find(key);
  if (value == nullptr) fail(ErrorKind::BadFile, "{}: {} is missing; expected a Spec", name_, key);
  try {
    field = read_spec(value->dump(), name_ + ": " + key);
  } catch (const Error& error) {  // the Spec comes from a file, not from the caller
    fail(ErrorKind::BadFile, "{}", error.what());
  }
}

void Config::only(const char* key, const nlohmann::json& value) {
  if (!reading_) return;
  const auto* found = find(key);
  if (found != nullptr && *found != value) {
    if (refused_ != nullptr) return refused_->push_back(key);
    fail(ErrorKind::Unsupported, "{}: {} is {}, which is not supported; expected {}", name_, key,
         brief(*found), value.dump());
  }
}

void Config::write(const char* key, const nlohmann::ordered_json& value) {
  if (reading_)
    known_.insert(key);
  else
    written_[key] = value;
}

void Config::refuse_unknown(std::initializer_list<const char*> harmless) const {
  for (const auto& [key, value] : json_->items()) {
    const auto same = [&](const char* name) { return key == name; };
    if (known_.contains(key) || is_harmless("config.json", key, value) ||
        std::any_of(harmless.begin(), harmless.end(), same)) {
      continue;
    }
    if (refused_ != nullptr) {
      refused_->push_back(key);
      continue;
    }
    fail(ErrorKind::Unsupported,
         "{}: {} is not known and, as {}, may change what the model computes; expected a key of "
         "this family",
         name_, excerpt(key), brief(value));
  }
}

}  // namespace fovea::model
