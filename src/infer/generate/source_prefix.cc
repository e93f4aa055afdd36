#include "generate/source_prefix.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "open/model_parts.h"

namespace fovea::infer {
namespace {

// Returns the names and prefixes in "task_specific_params" of config.json.
std::vector<std::pair<std::string, std::string>> tasks_of(const model::Origin& origin) {
  std::vector<std::pair<std::string, std::string>> found;
  const auto tasks = origin.carried.find("task_specific_params");
  if (tasks == origin.carried.end() || !tasks->is_object()) return found;
  for (const auto& [name, parameters] : tasks->items()) {
    if (parameters.is_object() && parameters.contains("prefix") && parameters["prefix"].is_string())
      found.emplace_back(name, parameters["prefix"]);
  }
  return found;
}

std::string prefix_of_task(const model::Origin& origin, const std::string& task) {
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

}  // namespace

std::string source_prefix_of(const model::Model& model, const TranslateOptions& options) {
  return options.task.empty() ? options.source_prefix
                              : prefix_of_task(model::parts_of(model).origin, options.task);
}

std::vector<TranslationDirection> translation_directions(const model::Model& model) {
  std::vector<TranslationDirection> found;
  for (const auto& [name, prefix] : tasks_of(model::parts_of(model).origin)) {
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

}  // namespace fovea::infer
