#pragma once

#include <string>
#include <vector>

namespace fovea {

struct FoundTexts {
  std::vector<std::string> files;      // paths from the folder, sorted
  std::vector<std::string> skipped;    // with a NUL byte at the beginning, or too large for texts
  std::vector<std::string> links_out;  // not followed, as they lead out of the folder
};

// The text files in a folder and below it; names that begin with a dot are left out.
FoundTexts text_files(const std::string& folder);

// As UTF-8: bad bytes become U+FFFD.
std::string read_text_file(const std::string& folder, const std::string& file);

}  // namespace fovea
