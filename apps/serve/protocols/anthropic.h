#pragma once

#include <memory>

#include "http/router.h"
#include "serve/generation/generation_format.h"
#include "serve/routes/api.h"

namespace fovea::serve {

// Adds the routes of Anthropic's API: /v1/messages and /v1/messages/count_tokens. `most_chat`: as
// Api::router(). `api` must outlive the router.
void add_anthropic_routes(http::Router& router, Api& api, size_t most_chat);

// The format of a message of `model`, after a prompt of this many tokens.
std::unique_ptr<GenerationFormat> anthropic_format(const AnthropicRequest& request,
                                                   const std::string& model, int64_t prompt_tokens);

// Returns the messages in OpenAI's form: `system` is a text or a list of blocks. Throws ApiError.
Json messages_of_anthropic(const Json& system, const Json& messages);
// Returns the tools in OpenAI's form. Tools that Anthropic's servers run are left out, and their
// names appended to `left_out`.
Json tools_of_anthropic(const Json& tools, std::vector<std::string>& left_out);

}  // namespace fovea::serve
