#pragma once

#include <filesystem>
#include <string>

namespace fovea {

// The folder of a model or of a data set has data of other people: a link in it could lead to any
// file of this machine. A link may stay within the folder, or within models--NAME or
// datasets--NAME of a Hugging Face cache for a folder in its snapshots/COMMIT. The folder itself
// may be a link.

// Returns the folder in which the targets of links in `folder` must be, as a path without links;
// empty if `folder` does not exist.
std::filesystem::path root_of_links(const std::filesystem::path& folder);
// Returns whether a path is that of the folder or of something in it; both without links.
bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder);

// Both throw BadFile, naming the link.

// Checks the files of a folder and of its subfolders.
void refuse_links_out(const std::string& folder);
// Checks one file, which may be missing.
void refuse_link_out(const std::string& file);

}  // namespace fovea
