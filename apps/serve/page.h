#pragma once

#include <map>
#include <string>
#include <string_view>

#include "http/router.h"

namespace fovea::serve {

// The files of apps/web/chat, embedded in the program, by name.
const std::map<std::string, std::string_view>& page_files();

// Adds the routes of the page: "/", "/chat.js" and "/chat.css". They need no key, since they are
// the same for everybody; the page asks for the key.
void add_page(http::Router& router);

}  // namespace fovea::serve
