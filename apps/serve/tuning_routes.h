#pragma once

#include <functional>
#include <string>

#include "http/router.h"
#include "tuning/fine_tuning.h"

namespace fovea::serve {

// Throws FieldError if the file with this id is in use.
using CheckUnused = std::function<void(const std::string& file)>;

// Adds the routes of files and fine-tuning jobs, in OpenAI's formats. `tuning` must outlive the
// router. `most_upload`: maximum bytes of the body of an upload. `check_unused` is asked before a
// file is deleted, beside the jobs.
void add_tuning_routes(http::Router& router, tuning::FineTuning& tuning, size_t most_upload,
                       const CheckUnused& check_unused = {});

}  // namespace fovea::serve
