#pragma once

#include <string>
#include <vector>

#include "http/http.h"
#include "serve/request/request.h"

namespace fovea::serve {

// Lists of objects in OpenAI's API, with the parameters `limit` and `after`.

// Returns a parameter of the query; empty if it is missing.
std::string query_of(const http::Request& request, const char* name);
[[noreturn]] void wrong_query(const char* name, const std::string& expected);
int64_t limit_of(const http::Request& request, int64_t initial, int64_t most);
// Returns the objects that follow the one whose id is the query's `after`.
Json page_of(const std::vector<Json>& all, const http::Request& request, int64_t limit);

}  // namespace fovea::serve
