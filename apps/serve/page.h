#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fovea::serve {

// The files of apps/web/chat, embedded in the program, by name.
const std::map<std::string, std::string_view>& page_files();

}  // namespace fovea::serve
