#pragma once

#include <string>

namespace fovea {

// A model's folder is data of other people: a link in it could lead to any file of this machine. A
// link may stay within the folder, or within models--NAME of a Hugging Face cache for a folder
// models--NAME/snapshots/COMMIT. Both throw BadFile, naming the link; the folder itself may be a
// link.

// Checks the files of a folder and of its subfolders.
void refuse_links_out(const std::string& folder);
// Checks one file, which may be missing.
void refuse_link_out(const std::string& file);

}  // namespace fovea
