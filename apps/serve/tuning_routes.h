#pragma once

#include "http/router.h"
#include "tuning/fine_tuning.h"

namespace fovea::serve {

// Adds the routes of files and fine-tuning jobs, in OpenAI's formats. `tuning` must outlive the
// router. `most_upload`: maximum bytes of the body of an upload.
void add_tuning_routes(http::Router& router, tuning::FineTuning& tuning, size_t most_upload);

}  // namespace fovea::serve
