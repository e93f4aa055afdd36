#include "fovea/translate.h"

#include "api/model_parts.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "base/machine.h"
#include "generate/translation.h"
#include "metrics/predictions.h"

namespace fovea {
namespace {

// Returns the names and prefixes in "task_specific_params" of config.json.
std::vector<std::pair<std::string, std::string>> tasks_of(const Origin& origin) {
  std::vector<std::pair<std::string, std::string>> found;
  const auto tasks = origin.carried.find("task_specific_params");
  if (tasks == origin.carried.end() || !tasks->is_object()) return found;
  for (const auto& [name, parameters] : tasks->items()) {
    if (parameters.is_object() && parameters.contains("prefix") && parameters["prefix"].is_string())
      found.emplace_back(name, parameters["prefix"]);
  }
  return found;
}

std::string prefix_of_task(const Origin& origin, const std::string& task) {
  std::vector<std::string> names;
  for (const auto& [name, prefix] : tasks_of(origin)) {
    if (name == task) return prefix;
    names.push_back(name);
  }
  fail_field(ErrorKind::InvalidArgument, "task", "config.json has no prefix for {}; expected {}",
             task,
             names.empty() ? "a model with task_specific_params"
                           : fmt::format("{}", fmt::join(names, " or ")));
}

Generator generator_of(const Model& model) {
  const Model::Parts& parts = model.parts();
  check(model.has_tokenizer(), "translate: the model has no tokenizer; expected a model with one");
  return {parts.transformer,
          &*parts.target_tokenizer,
          rules_of(parts.origin, parts.end_ids),
          DType::f32,
          parts.cache,
          &*parts.tokenizer};
}

TranslateOptions settled(const Model& model, const TranslateOptions& options) {
  TranslateOptions settled = options;
  settled.source_prefix = source_prefix_of(model, options);
  return settled;
}

}  // namespace

std::string source_prefix_of(const Model& model, const TranslateOptions& options) {
  return options.task.empty() ? options.source_prefix
                              : prefix_of_task(model.parts().origin, options.task);
}

TranslationRequest translation_request(const Model& model, const TranslateOptions& options,
                                       const std::string& line) {
  const FloatMode mode;
  return translation_request(generator_of(model), settled(model, options), line);
}

void translate(const Model& model, const TranslateOptions& options,
               const std::function<std::optional<std::string>()>& next,
               const std::function<bool(const Translation&)>& put) {
  const FloatMode mode;
  translate(generator_of(model), settled(model, options), available_memory() / 2, next, put);
}

std::vector<TranslationDirection> translation_directions(const Model& model) {
  std::vector<TranslationDirection> found;
  for (const auto& [name, prefix] : tasks_of(model.parts().origin)) {
    constexpr std::string_view kTranslation = "translation_", kTo = "_to_";
    const size_t to = name.find(kTo);
    if (!name.starts_with(kTranslation) || to == std::string::npos) continue;
    found.push_back({name.substr(kTranslation.size(), to - kTranslation.size()),
                     name.substr(to + kTo.size()), prefix});
  }
  if (!model.has_tokenizer()) return found;
  for (int32_t id = 0; id < model.tokenizer().size(); ++id) {
    const std::string code(model.tokenizer().text_of(id));
    if (code.size() > 4 && code.starts_with(">>") && code.ends_with("<<"))
      found.push_back({"", code.substr(2, code.size() - 4), code + " "});
  }
  return found;
}

MetricValues score_translations(const std::vector<std::string>& hypotheses,
                                const std::vector<std::string>& references) {
  const FloatMode mode;
  check(hypotheses.size() == references.size(),
        "{} translations, {} references; expected equal numbers", hypotheses.size(),
        references.size());
  Predictions found;
  auto& translations = found.translations.emplace();
  for (size_t i = 0; i < hypotheses.size(); ++i)
    translations.emplace_back(hypotheses[i], references[i]);
  return values_of(evaluation_task("pairs").metrics, found);
}

}  // namespace fovea
