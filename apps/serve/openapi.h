#pragma once

#include "http/router.h"
#include "serve/request/request.h"

namespace fovea::serve {

// Returns the description of the routes as OpenAPI 3.1 has it, with the fields of their requests.
Json openapi_json(const http::Router& router);
// Adds GET /openapi.json, which describes itself and the routes that the router has.
void add_openapi_route(http::Router& router);

}  // namespace fovea::serve
