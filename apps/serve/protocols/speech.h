#pragma once

#include <cstddef>

#include "http/router.h"
#include "serve/routes/api.h"

namespace fovea::serve {

// Adds OpenAI's routes /v1/audio/transcriptions and /v1/audio/translations, and whisper.cpp's
// /inference. An upload has at most `most_upload` bytes. `api` must outlive the router.
void add_speech_routes(http::Router& router, Api& api, size_t most_upload);

}  // namespace fovea::serve
