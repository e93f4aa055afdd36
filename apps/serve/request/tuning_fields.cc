#include <fmt/format.h>

#include <algorithm>

#include "serve/request/fields.h"
#include "serve/request/graders.h"

namespace fovea::serve {
namespace {

constexpr size_t kKeyBytes = 64, kValueBytes = 512;  // of metadata, as in OpenAI's API
constexpr double kMostSeed = 2147483647;

[[noreturn]] void refuse(const std::string& param, const std::string& what, const char* code) {
  throw ApiError{400, param + ": " + what, param, code};
}

using tuning::JobMethod;
using JobField = Field<FineTuningRequest>;

void put_method(const Json& value, FineTuningRequest& request) {
  const auto& type = value.get_ref<const std::string&>();
  for (const JobMethod method : {JobMethod::supervised, JobMethod::dpo, JobMethod::reinforcement}) {
    if (type != tuning::name_of(method)) continue;
    request.job.method = method;
    return;
  }
  refuse("method.type", type + " is not supported; expected supervised, dpo or reinforcement",
         "unsupported_value");
}

// The options of one method, which a request of another one must not have.
JobField options_of(JobMethod method) {
  return {{std::string("method.") + tuning::name_of(method), FieldType::object, 0, 16, "none",
           fmt::format("the options of the type {}", tuning::name_of(method))},
          [method](const Json&, FineTuningRequest& request) { request.methods.push_back(method); }};
}

// An entry for a field that is not supported.
JobField unsupported(const std::string& name) {
  return {{name, FieldType::any, 0, 0, "none", "not supported"},
          [name](const Json&, FineTuningRequest&) {
            refuse(name, "is not supported", "unsupported_value");
          }};
}

void put_integrations(const Json& value, FineTuningRequest&) {
  if (!value.empty()) refuse("integrations", "are not supported", "unsupported_value");
}

void put_metadata(const Json& value, FineTuningRequest& request) {
  request.job.metadata = checked_metadata(value);
}

template <class T>
JobField::Put put_if_given(std::optional<T> tuning::JobRequest::* member) {
  return [member](const Json& value, FineTuningRequest& request) {
    if (value.is_number()) request.job.*member = value.get<T>();
  };
}

// The hyperparameters, which older clients send in the request itself.
Fields<FineTuningRequest> hyperparameters(const std::string& path, JobMethod method) {
  const bool supervised = method == JobMethod::supervised;
  const char* const batch =
      supervised ? "rows per step, into which short conversations are packed; auto = 4"
      : method == JobMethod::dpo ? "pairs per step; auto = 4"
                                 : "prompts per step; auto = 4";
  return {
      {{path, FieldType::object, 0, 16, "none", "hyperparameters"},
       [](const Json&, FineTuningRequest&) {}},
      {{path + ".n_epochs", FieldType::automatic_integer, 1, 50, "auto",
        supervised ? "passes over the data; auto = 3" : "passes over the data; auto = 1"},
       put_if_given(&tuning::JobRequest::epochs)},
      {{path + ".batch_size", FieldType::automatic_integer, 1, 256, "auto", batch},
       put_if_given(&tuning::JobRequest::batch)},
      {{path + ".learning_rate_multiplier", FieldType::automatic_number, 0.001, 1000, "auto",
        supervised ? "peak learning rate, as a multiple of 0.0002; auto = 1"
                   : "peak learning rate, as a multiple of 0.00002; auto = 1"},
       put_if_given(&tuning::JobRequest::rate_multiplier)},
  };
}

Fields<FineTuningRequest> reinforcement_fields() {
  const std::string path = "method.reinforcement.hyperparameters.";
  return {
      {{"method.reinforcement.grader", FieldType::object, 0, 16, "none",
        "what an answer is worth; required for the type reinforcement"},
       [](const Json& value, FineTuningRequest& request) {
         request.job.rewards = rewards_of(value);
         request.job.grader = value;
       }},
      unsupported("method.reinforcement.response_format"),
      {{path + "compute_multiplier", FieldType::automatic_number, 0.25, 16, "auto",
        "answers to each prompt, as a multiple of 8; auto = 1"},
       put_if_given(&tuning::JobRequest::compute_multiplier)},
      {{path + "eval_interval", FieldType::automatic_integer, 1, 1e6, "auto",
        "steps between evaluations and checkpoints; auto = an epoch"},
       put_if_given(&tuning::JobRequest::evaluation_interval)},
      {{path + "eval_samples", FieldType::automatic_integer, 1, 1e6, "auto",
        "prompts in an evaluation; auto = 256"},
       put_if_given(&tuning::JobRequest::evaluation_samples)},
      {{path + "answer_tokens", FieldType::automatic_integer, 1, 1e6, "auto",
        "maximum tokens of an answer; auto = 256; not in OpenAI's API"},
       put_if_given(&tuning::JobRequest::answer_tokens)},
      unsupported(path + "reasoning_effort"),
  };
}

Fields<FineTuningRequest> tuning_fields() {
  Fields<FineTuningRequest> all = {
      {{"model", FieldType::text, 1, 1024, "", "name of the served model to fine-tune", true},
       [](const Json& v, FineTuningRequest& r) { r.job.model = v; }},
      {{"training_file", FieldType::text, 1, 64, "", "id of an uploaded file", true},
       [](const Json& v, FineTuningRequest& r) { r.job.training_file = v; }},
      {{"validation_file", FieldType::text, 0, 64, "none",
        "id of an uploaded file; its loss selects the best weights"},
       [](const Json& v, FineTuningRequest& r) { r.job.validation_file = v; }},
      {{"suffix", FieldType::text, 0, 64, "none",
        "part of the new model's name: letters, digits, hyphens, underscores and full stops"},
       [](const Json& v, FineTuningRequest& r) { r.job.suffix = v; }},
      {{"seed", FieldType::integer, 0, kMostSeed, "random",
        "seed of the adapter's initial weights, the data order and dropout"},
       [](const Json& v, FineTuningRequest& r) { r.job.seed = v.get<int64_t>(); }},
      {{"metadata", FieldType::object, 0, 16, "none", "texts that are returned with the job"},
       put_metadata},
      {{"integrations", FieldType::array, 0, 16, "none", "not supported"}, put_integrations},
      {{"method", FieldType::object, 0, 16, "none", "the method of training"},
       [](const Json&, FineTuningRequest&) {}},
      {{"method.type", FieldType::text, 1, 64, "supervised",
        "supervised: chats; dpo: preferences; reinforcement: rewards of answers (GRPO)"},
       put_method},
  };
  const auto add = [&](const Fields<FineTuningRequest>& some) {
    all.insert(all.end(), some.begin(), some.end());
  };
  add(hyperparameters("hyperparameters", JobMethod::supervised));
  for (const JobMethod method : {JobMethod::supervised, JobMethod::dpo, JobMethod::reinforcement}) {
    all.push_back(options_of(method));
    add(hyperparameters(all.back().info.name + ".hyperparameters", method));
  }
  all.push_back({{"method.dpo.hyperparameters.beta", FieldType::automatic_number, 1e-6, 100, "auto",
                  "strength with which the model is kept near the initial one; auto = 0.1"},
                 put_if_given(&tuning::JobRequest::beta)});
  add(reinforcement_fields());
  return all;
}

}  // namespace

Json checked_metadata(const Json& value) {
  for (const auto& [key, text] : value.items()) {
    if (key.size() > kKeyBytes || !text.is_string() || text.get<std::string>().size() > kValueBytes)
      refuse("metadata",
             fmt::format("expected texts of at most {} bytes, with keys of at most {} bytes",
                         kValueBytes, kKeyBytes),
             "invalid_value");
  }
  return value;
}

template <>
const Fields<FineTuningRequest>& fields_of() {
  static const Fields<FineTuningRequest> all = tuning_fields();
  return all;
}

void check_methods(const FineTuningRequest& request) {
  for (const JobMethod given : request.methods)
    if (given != request.job.method)
      refuse(fmt::format("method.{}", tuning::name_of(given)),
             fmt::format("is given with the type {}; expected only the options of that type",
                         tuning::name_of(request.job.method)),
             "invalid_value");
}

}  // namespace fovea::serve
