#pragma once

#include <memory>
#include <vector>

#include "http/http.h"
#include "serve/served_model.h"

namespace fovea::serve {

// Handles /translate in LibreTranslate's format: {"translatedText", "alternatives"?,
// "detectedLanguage"?}. For an array of texts, the values are arrays. The lines of a text are
// translated separately. Throws ApiError.
void serve_translation(const TranslateRequest& request,
                       const std::vector<std::shared_ptr<ServedModel>>& models,
                       const std::shared_ptr<http::Exchange>& exchange);

// Handles /languages: [{"code", "name", "targets"}].
Json languages_json(const std::vector<std::shared_ptr<ServedModel>>& models);

// Converts the body of an HTML form ("q=Hallo&source=de") to the equivalent JSON.
std::string json_of_form(const std::string& form);

}  // namespace fovea::serve
