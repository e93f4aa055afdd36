#pragma once

#include <map>
#include <string>
#include <string_view>

#include "inspector/routes.h"

namespace fovea::inspector {

// The files of apps/web, embedded in the program, by name.
const std::map<std::string, std::string_view>& page_files();

// Returns one of these files: "" is the page itself, "saved.html" is saved_page() without captured
// responses. The status is 404 if the file does not exist.
Response page_file(const std::string& path);

// Returns the page as one HTML file that needs no server. `responses` maps request paths
// ("api/models") to the captured responses; `hash` is the view, as in the page's URL.
std::string saved_page(const std::map<std::string, Response>& responses, const std::string& hash);

std::string base64(std::string_view bytes);

}  // namespace fovea::inspector
