#pragma once

#include <string>
#include <vector>

#include "options/options.h"

namespace fovea::cli {

// Returns an option for a model, whose value may also be the name of a model of the Hugging Face
// Hub: it is replaced by the path in the cache.
Option of_model(Option option);
// MODEL, with the aliases of other programs.
Option model_argument(std::string& model, std::string help = "model directory");

// FILE..., the input of a job over lines.
Option input_arguments(std::vector<std::string>& files);

// --out FILE, the output of a job over lines.
Option job_output(std::string& out);

}  // namespace fovea::cli
