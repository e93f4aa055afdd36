#pragma once

#include <string>
#include <vector>

namespace fovea {

// The text files in a folder and below it, as paths from there, sorted; names that begin with a dot
// are left out. What holds a NUL byte at its beginning, or is larger than a text can be, is
// `skipped`.
std::vector<std::string> text_files(const std::string& folder, std::vector<std::string>& skipped);

// As UTF-8: bad bytes become U+FFFD.
std::string read_text_file(const std::string& folder, const std::string& file);

}  // namespace fovea
