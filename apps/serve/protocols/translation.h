#pragma once

#include "serve/routes/api.h"

namespace fovea::serve {

// Adds LibreTranslate's routes. /translate: {"translatedText", "alternatives"?,
// "detectedLanguage"?}; for an array of texts, the values are arrays. The lines of a text are
// translated separately. /languages: [{"code", "name", "targets"}]. /detect: [{"confidence",
// "language"}]. /translate_file: {"translatedFileUrl"}, the address of a file under
// /download_file/. `api` must outlive the router.
void add_translation_routes(http::Router& router, Api& api);

}  // namespace fovea::serve
