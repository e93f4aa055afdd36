#pragma once

#include <cstdint>
#include <vector>

#include "http/http.h"
#include "serve/served_model.h"

namespace fovea::serve {

// The prompts of a request as token ids, and its options for the model: max_tokens limited by the
// context, response_format and tool_choice as a constraint. Throws ApiError.
struct PreparedPrompts {
  std::vector<std::vector<int32_t>> ids;
  bool find_calls = false;  // parse tool calls in the text
};
PreparedPrompts prepare(ApiRequest& request, bool chat, ServedModel& model,
                        const http::Exchange& exchange);

}  // namespace fovea::serve
