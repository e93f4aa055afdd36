#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fovea::inspector {

// The files of the small trained model that the program carries, by name: a model directory.
// tools/data/make_course_model.sh makes them.
const std::map<std::string, std::string_view>& course_model_files();

// Writes the model to a directory, which is created.
void write_course_model(const std::string& folder);

}  // namespace fovea::inspector
