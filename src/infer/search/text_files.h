#pragma once

#include <string>
#include <vector>

namespace fovea::infer {

struct FoundTexts {
  std::vector<std::string> files;  // paths relative to the folder, sorted
  // Files above 64 MiB, or with NUL in the first 8 KiB, unless a program reads them (documents.h).
  std::vector<std::string> skipped;
  std::vector<std::string> links_out;  // links out of the folder or to nothing; not followed
};

// Finds the text files in a folder and its subfolders, or those among them that have the path
// `only` or are below it; names that begin with a dot are skipped.
FoundTexts text_files(const std::string& folder, const std::string& only = ".");

// Reads a file as UTF-8: invalid bytes become U+FFFD.
std::string read_text_file(const std::string& folder, const std::string& file);

}  // namespace fovea::infer
