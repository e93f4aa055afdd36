#pragma once

#include <string>

namespace fovea::cli {

// Opens an address in a browser if there is a display. Does not wait for the browser.
void open_browser(const std::string& address);

}  // namespace fovea::cli
