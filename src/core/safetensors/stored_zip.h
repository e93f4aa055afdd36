#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/files.h"

namespace fovea {

// Returns the entries of an untrusted zip archive by their names, as bytes of its mapping. Throws
// BadFile if it is damaged, and Unsupported if an entry is compressed or encrypted, or if the
// archive is larger than 4 GB.
std::map<std::string, std::string_view> stored_zip_entries(const MappedFile& file);

}  // namespace fovea
