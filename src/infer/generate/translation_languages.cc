#include "generate/translation_languages.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/json.h"
#include "families/languages.h"
#include "fovea/text/languages.h"
#include "generate/rules.h"
#include "open/model_parts.h"
#include "tokenizer/state/state.h"

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

bool all(std::string_view text, bool (*is)(char)) {
  return std::all_of(text.begin(), text.end(), is);
}
bool small(char c) { return c >= 'a' && c <= 'z'; }
bool large(char c) { return c >= 'A' && c <= 'Z'; }

// Returns the code in the text of a language's token: "en" of "__en__", "eng_Latn" and "en_XX" as
// they are; empty for other texts.
std::string_view code_in(std::string_view token) {
  if (token.size() > 4 && token.starts_with("__") && token.ends_with("__")) {
    const std::string_view code = token.substr(2, token.size() - 4);
    return code.size() <= 3 && all(code, small) ? code : "";
  }
  const size_t cut = token.find('_');
  if (cut == std::string_view::npos || !all(token.substr(0, cut), small)) return "";
  const std::string_view part = token.substr(cut + 1);
  const bool script = cut == 3 && part.size() == 4 && large(part[0]) && all(part.substr(1), small);
  const bool region = cut == 2 && part.size() == 2 && all(part, large);
  return script || region ? token : "";
}

std::string_view code_of(const text::Tokenizer& tokenizer, int32_t id) {
  return tokenizer.is_special(id) ? code_in(tokenizer.text_of(id)) : "";
}

int32_t token_of(const text::Tokenizer& tokenizer, const std::string& code) {
  const auto id = tokenizer.id_of(code);
  return id ? *id : *tokenizer.id_of("__" + code + "__");
}

// Returns a text of tokenizer_config.json; empty if it has no such text.
std::string setting_of(const model::Model& model, const char* key) {
  const std::string& config = model.tokenizer().state().files.config;
  if (config.find(key) == config.npos) return "";
  const nlohmann::json value =
      parse_json(config, "tokenizer_config.json").value(key, nlohmann::json());
  return value.is_string() ? value.get<std::string>() : "";
}

// Returns the code that `language` means; `field` is the option that gives it.
std::string code_for(const char* field, const std::string& language,
                     const std::vector<std::string>& codes) {
  const std::vector<std::string> found = text::matching_codes(language, codes);
  check_field(found.size() <= 1, field, "{} is {} in this model; expected one of them", language,
              fmt::join(found, " or "));
  check_field(!found.empty(), field, "the model has no language {}; expected {}",
              language.empty() ? "is given" : language, text::shortened(codes));
  return found[0];
}

// Chooses the tokens of the languages of a model that translates between any two of `codes`.
ChosenLanguages among(const std::vector<std::string>& codes, const model::Model& model,
                      const TranslateOptions& options) {
  const text::Tokenizer& tokenizer = model.tokenizer();
  ChosenLanguages chosen;
  chosen.source_prefix = source_prefix_of(model, options);
  const auto choose = [&](const char* field, const std::string& language, bool known,
                          std::optional<int32_t>& token) {
    if (language.empty() && known) return;
    check_field(!language.empty(), field, "not given; expected a language of the model: {}",
                text::shortened(codes));
    token = token_of(tokenizer, code_for(field, language, codes));
  };
  const bool forced =
      model::special_id(model::parts_of(model).origin, "forced_bos_token_id").has_value();
  choose("source_language", options.source_language, !setting_of(model, "src_lang").empty(),
         chosen.source);
  choose("target_language", options.target_language, forced, chosen.target);
  return chosen;
}

bool suits(const std::string& language, const std::string& code) {
  return language.empty() || code.empty() || !text::matching_codes(language, {code}).empty();
}

// Describes directions: "de to en, en to de".
std::vector<std::string> described(const std::vector<TranslationDirection>& directions) {
  std::vector<std::string> texts;
  for (const auto& [source, target, prefix] : directions)
    texts.push_back(fmt::format("{} to {}", source.empty() ? "any language" : source,
                                target.empty() ? "any language" : target));
  return texts;
}

// Chooses one of the directions of a model, by the languages that are given.
ChosenLanguages among(const std::vector<TranslationDirection>& directions,
                      const TranslateOptions& options) {
  std::vector<TranslationDirection> fitting;
  for (const TranslationDirection& each : directions)
    if (suits(options.source_language, each.source) && suits(options.target_language, each.target))
      fitting.push_back(each);
  const bool source = !options.source_language.empty(), target = !options.target_language.empty();
  check_field(!fitting.empty(), target ? "target_language" : "source_language",
              "{}{}{}, which the model does not translate; expected {}", options.source_language,
              source && target ? " to " : "", options.target_language,
              text::shortened(described(directions)));
  const bool same = std::all_of(fitting.begin(), fitting.end(), [&](const auto& each) {
    return each.source_prefix == fitting[0].source_prefix;
  });
  check_field(same, target ? "source_language" : "target_language",
              "not given, and the model has several; expected one of {}",
              text::shortened(described(fitting)));
  ChosenLanguages chosen;
  chosen.source_prefix =
      fitting[0].source_prefix.empty() ? options.source_prefix : fitting[0].source_prefix;
  return chosen;
}

}  // namespace

std::string source_prefix_of(const model::Model& model, const TranslateOptions& options) {
  return options.task.empty() ? options.source_prefix
                              : prefix_of_task(model::parts_of(model).origin, options.task);
}

bool is_language(const text::Tokenizer& tokenizer, int32_t id) {
  return !code_of(tokenizer, id).empty();
}

ChosenLanguages chosen_languages(const model::Model& model, const TranslateOptions& options) {
  const bool given = !options.source_language.empty() || !options.target_language.empty();
  check_field(!given || options.task.empty(), "task", "given with languages; expected one of them");
  if (const auto codes = translation_languages(model); !codes.empty())
    return among(codes, model, options);
  if (!given) return {{}, {}, source_prefix_of(model, options)};
  const std::vector<TranslationDirection> directions = translation_directions(model);
  if (!directions.empty()) return among(directions, options);
  const auto& origin = model::parts_of(model).origin;
  const std::string prefix =
      origin.family == nullptr
          ? ""
          : model::translation_prefix(*origin.family, text::language_name(options.source_language),
                                      text::language_name(options.target_language));
  check_field(!prefix.empty(),
              options.target_language.empty() ? "source_language" : "target_language",
              "the model names no languages; expected no language, or a model of several");
  for (const auto& [field, language] : {std::pair("source_language", options.source_language),
                                        std::pair("target_language", options.target_language)})
    check_field(text::find_language(language.substr(0, language.find_first_of("-_"))) != nullptr,
                field, "{} is not a language; expected a tag such as en or de",
                language.empty() ? "\"\"" : language);
  return {{}, {}, prefix};
}

std::vector<std::string> translation_languages(const model::Model& model) {
  std::vector<std::string> codes;
  if (!model.has_tokenizer() || !model.spec().encoder || !model.spec().decoder) return codes;
  const text::Tokenizer& tokenizer = model.tokenizer();
  for (int32_t id = 0; id < tokenizer.size(); ++id)
    if (const std::string_view code = code_of(tokenizer, id); !code.empty())
      codes.emplace_back(code);
  if (codes.size() < 2) codes.clear();
  return codes;
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
  const std::string source = setting_of(model, "source_lang");
  for (int32_t id = 0; id < model.tokenizer().size(); ++id) {
    const std::string code(model.tokenizer().text_of(id));
    if (code.size() > 4 && code.starts_with(">>") && code.ends_with("<<"))
      found.push_back({source, code.substr(2, code.size() - 4), code + " "});
  }
  const std::string target = setting_of(model, "target_lang");
  if (found.empty() && (!source.empty() || !target.empty())) found.push_back({source, target, ""});
  return found;
}

}  // namespace fovea::infer
