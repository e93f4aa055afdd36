#pragma once

#include <functional>
#include <string>

#include "http/router.h"
#include "tuning/fine_tuning.h"

namespace fovea::serve {

// What is asked and done before something is deleted; each may be empty.
struct DeletionHooks {
  // Throws FieldError if the file with this id is in use.
  std::function<void(const std::string& id)> check_file = {};
  std::function<void(const std::string& name)> end_serving = {};  // of a result
};

// Adds the routes of files and fine-tuning jobs, in OpenAI's formats. `tuning` must outlive the
// router. `most_upload`: maximum bytes of the body of an upload.
void add_tuning_routes(http::Router& router, tuning::FineTuning& tuning, size_t most_upload,
                       const DeletionHooks& hooks = {});

}  // namespace fovea::serve
