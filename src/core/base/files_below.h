#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fovea {

struct FilesBelow {
  std::vector<std::filesystem::path> files;  // sorted; each begins with the folder's path
  // Links that lead out of the folder or to nothing: through such links, the folder's author could
  // read any file of the user.
  std::vector<std::filesystem::path> links_out;
};

// Returns the regular files of a folder and of its subfolders, except files and subfolders whose
// names begin with a dot. A link to a file is included if the file is below the folder too
// (root_of_links()); links to folders are not followed, since they could form cycles. Throws
// BadFile if a folder cannot be listed or is more than 64 levels deep.
FilesBelow files_below(const std::string& folder);

}  // namespace fovea
