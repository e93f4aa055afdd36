#pragma once

#include <cstdint>
#include <vector>

#include "http/http.h"
#include "serve/served_model.h"

namespace fovea::serve {

// The prompts of a request as token ids. The request's max_tokens is limited by the context, and
// response_format and tool_choice become a constraint. Throws ApiError.
struct PreparedPrompts {
  std::vector<std::vector<int32_t>> ids;
  bool find_calls = false;  // parse tool calls in the text
};
PreparedPrompts prepare(ApiRequest& request, bool chat, ServedModel& model,
                        const http::Exchange& exchange);

}  // namespace fovea::serve
