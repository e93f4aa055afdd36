#pragma once

#include <string>

namespace fovea {

// Returns the path of an optional part of fovea that is a shared object of its own, because its
// libraries are large: next to the program, as in a build folder, or in the folder of fovea's
// libraries; empty if it is not installed. With the bare name, the loader would search folders to
// which other users may write.
std::string module_path(const std::string& name);

// The folder of the program, for messages.
std::string program_folder();

}  // namespace fovea
