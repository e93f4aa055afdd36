#pragma once

#include <optional>
#include <string>

#include "fovea/infer/translate.h"

namespace fovea::infer {

// Returns the text that is prepended to every source: that of the options or, if they name a task,
// that of the checkpoint.
std::string source_prefix_of(const model::Model& model, const TranslateOptions& options);

// What the languages of a translation change.
struct ChosenLanguages {
  std::optional<int32_t> source, target;  // their tokens, in models with one for each language
  std::string source_prefix;              // as in TranslateOptions
};
// Throws InvalidArgument, naming the option and the languages that the model knows, if a language
// is unknown, ambiguous, or missing in a model that needs it.
ChosenLanguages chosen_languages(const model::Model& model, const TranslateOptions& options);

// Returns whether the token is that of a language, such as "eng_Latn", "en_XX" or "__en__".
bool is_language(const text::Tokenizer& tokenizer, int32_t id);

}  // namespace fovea::infer
