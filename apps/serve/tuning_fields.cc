#include <fmt/format.h>

#include <algorithm>

#include "serve/fields.h"

namespace fovea::serve {
namespace {

constexpr size_t kKeyBytes = 64, kValueBytes = 512;  // of metadata, as in OpenAI's API
constexpr double kMostSeed = 2147483647;

[[noreturn]] void refuse(const std::string& param, const std::string& what, const char* code) {
  throw ApiError{400, param + ": " + what, param, code};
}

void put_method(const Json& value, ApiRequest&) {
  const auto& type = value.get_ref<const std::string&>();
  if (type == "supervised") return;
  refuse("method.type", type + " is not supported; expected supervised", "unsupported_value");
}

// An entry for a method that is not supported.
Field unsupported(const char* method) {
  const std::string name = std::string("method.") + method;
  return {
      name, kJob, FieldType::any, 0, 0, "none", "not supported", [name](const Json&, ApiRequest&) {
        refuse(name, "is not supported; expected supervised", "unsupported_value");
      }};
}

void put_integrations(const Json& value, ApiRequest&) {
  if (!value.empty()) refuse("integrations", "are not supported", "unsupported_value");
}

void put_metadata(const Json& value, ApiRequest& request) {
  for (const auto& [key, text] : value.items()) {
    if (key.size() > kKeyBytes || !text.is_string() || text.get<std::string>().size() > kValueBytes)
      refuse("metadata",
             fmt::format("expected texts of at most {} bytes, with keys of at most {} bytes",
                         kValueBytes, kKeyBytes),
             "invalid_value");
  }
  request.job.metadata = value;
}

template <class T>
decltype(Field::put) put_if_given(std::optional<T> tuning::JobRequest::*member) {
  return [member](const Json& value, ApiRequest& request) {
    if (value.is_number()) request.job.*member = value.get<T>();
  };
}

// The hyperparameters, which older clients send in the request itself.
std::vector<Field> hyperparameters(const std::string& path) {
  return {
      {path, kJob, FieldType::object, 0, 16, "none", "hyperparameters",
       [](const Json&, ApiRequest&) {}},
      {path + ".n_epochs", kJob, FieldType::automatic_integer, 1, 50, "auto",
       "passes over the data; auto = 3", put_if_given(&tuning::JobRequest::epochs)},
      {path + ".batch_size", kJob, FieldType::automatic_integer, 1, 256, "auto",
       "rows per step, into which short conversations are packed; auto = 4",
       put_if_given(&tuning::JobRequest::batch)},
      {path + ".learning_rate_multiplier", kJob, FieldType::automatic_number, 0.001, 1000, "auto",
       "peak learning rate, as a multiple of 0.0002; auto = 1",
       put_if_given(&tuning::JobRequest::rate_multiplier)},
  };
}

}  // namespace

std::vector<Field> tuning_fields() {
  std::vector<Field> all = {
      {"model", kJob, FieldType::text, 1, 1024, "", "name of the served model to fine-tune",
       [](const Json& v, ApiRequest& r) { r.job.model = v; }, true},
      {"training_file", kJob, FieldType::text, 1, 64, "", "id of an uploaded file",
       [](const Json& v, ApiRequest& r) { r.job.training_file = v; }, true},
      {"validation_file", kJob, FieldType::text, 0, 64, "none",
       "id of an uploaded file; its loss selects the best weights",
       [](const Json& v, ApiRequest& r) { r.job.validation_file = v; }},
      {"suffix", kJob, FieldType::text, 0, 64, "none",
       "part of the new model's name: letters, digits, hyphens, underscores and full stops",
       [](const Json& v, ApiRequest& r) { r.job.suffix = v; }},
      {"seed", kJob, FieldType::integer, 0, kMostSeed, "random",
       "seed of the adapter's initial weights, the data order and dropout",
       [](const Json& v, ApiRequest& r) { r.job.seed = v.get<int64_t>(); }},
      {"metadata", kJob, FieldType::object, 0, 16, "none", "texts that are returned with the job",
       put_metadata},
      {"integrations", kJob, FieldType::array, 0, 16, "none", "not supported", put_integrations},
      {"method", kJob, FieldType::object, 0, 16, "none", "the method of training",
       [](const Json&, ApiRequest&) {}},
      {"method.type", kJob, FieldType::text, 1, 64, "supervised", "only supervised is supported",
       put_method},
      unsupported("dpo"),
      unsupported("reinforcement"),
      {"method.supervised", kJob, FieldType::object, 0, 16, "none", "the options of the method",
       [](const Json&, ApiRequest&) {}},
  };
  for (const char* path : {"hyperparameters", "method.supervised.hyperparameters"}) {
    const std::vector<Field> some = hyperparameters(path);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace fovea::serve
