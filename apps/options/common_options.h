#pragma once

#include <string>
#include <vector>

#include "options/options.h"

namespace fovea::cli {

// MODEL, with the aliases of other programs.
Option model_place(std::string& model, std::string help = "model directory");

// FILE..., the input of a job over lines.
Option input_places(std::vector<std::string>& files);

// --out FILE, the output of a job over lines.
Option job_output(std::string& out);

}  // namespace fovea::cli
