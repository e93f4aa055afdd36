#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fovea {

struct FilesBelow {
  std::vector<std::filesystem::path> files;  // sorted; they begin with the folder's path
  // Links that lead out of the folder, or nowhere: somebody who made the folder could name any file
  // of the reader's with them.
  std::vector<std::filesystem::path> links_out;
};

// The regular files of a folder and of the folders in it, without names that begin with a dot. A
// link to a file counts where that file lies in the folder too; links to folders are not followed,
// for they could lead in circles. BadFile where a folder cannot be listed.
FilesBelow files_below(const std::string& folder);

}  // namespace fovea
