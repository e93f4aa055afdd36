#pragma once

#include <memory>

#include "http/router.h"
#include "serve/generation/generation_format.h"
#include "serve/routes/api.h"

namespace fovea::serve {

// Adds /v1/responses of OpenAI's API. Nothing is stored: each request has the whole conversation.
// `most_chat`: as Api::router(). `api` must outlive the router.
void add_responses_route(http::Router& router, Api& api, size_t most_chat);

// The format of a response of `model`.
std::unique_ptr<GenerationFormat> responses_format(const ResponsesRequest& request,
                                                   const std::string& model);

// Returns the items of an input, which may be a text, as messages of a chat. Throws ApiError.
Json messages_of_items(const Json& instructions, const Json& input,
                       std::vector<std::string>& warnings);
// Returns the functions and custom tools among the tools, those of namespaces included, as tools of
// a chat. Types of tools that the server does not run are appended to `left_out`; `request`
// receives namespaces, the names of custom tools, and warnings.
Json tools_of_responses(const Json& tools, std::vector<std::string>& left_out,
                        ResponsesRequest& request);

}  // namespace fovea::serve
