#pragma once

#include <string>

#include "http/router.h"
#include "inspector/routes.h"

namespace fovea::inspector {

// Adds the page and its routes under `prefix`, which ends in '/'. `routes` must outlive the router.
void mount(http::Router& router, const std::string& prefix, Routes& routes);

}  // namespace fovea::inspector
