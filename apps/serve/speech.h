#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "http/router.h"
#include "serve/served_model.h"

namespace fovea::serve {

// Adds OpenAI's routes /v1/audio/transcriptions and /v1/audio/translations, and whisper.cpp's
// /inference. `models` returns the served models; an upload has at most `most_upload` bytes.
using ServedModels = std::vector<std::shared_ptr<ServedModel>>;
void add_speech_routes(http::Router& router, const std::function<ServedModels()>& models,
                       size_t most_upload);

}  // namespace fovea::serve
