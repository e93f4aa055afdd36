#pragma once

#include <memory>
#include <vector>

#include "http/http.h"
#include "serve/served_model.h"

namespace fovea::serve {

// /translate as LibreTranslate has it: {"translatedText", "alternatives"?, "detectedLanguage"?}, or
// arrays of these for an array of texts. Lines of a text are translated one by one. Throws
// ApiError.
void answer_translation(const ApiRequest& request,
                        const std::vector<std::shared_ptr<ServedModel>>& models,
                        const std::shared_ptr<Exchange>& exchange);

// /languages: [{"code", "name", "targets"}]
Json languages_json(const std::vector<std::shared_ptr<ServedModel>>& models);

// A form, as pages send it, as the JSON that it stands for.
std::string json_of_form(const std::string& form);

}  // namespace fovea::serve
