#pragma once

#include <map>
#include <string>
#include <string_view>

#include "inspector/routes.h"

namespace fovea::inspector {

// The files of apps/web by name, as they lie in the program.
const std::map<std::string, std::string_view>& page_files();

// One of them, "" for the page itself and "saved.html" for one that holds no answers yet; 404 where
// there is none.
Answer page_file(const std::string& path);

// The whole page as one HTML file that asks nobody: `answers` are what it would be told, by the
// addresses that it would ask ("api/models"). `hash` is the view, as in the page's address.
std::string saved_page(const std::map<std::string, Answer>& answers, const std::string& hash);

std::string base64(std::string_view bytes);

}  // namespace fovea::inspector
