#pragma once

#include <cstdint>
#include <vector>

#include "http/http.h"
#include "serve/served_model.h"

namespace fovea::serve {

// What a request wants to be answered, as token ids; and what its fields mean for its model:
// max_tokens within the context, response_format and tool_choice as a constraint. Throws ApiError.
struct PreparedPrompts {
  std::vector<std::vector<int32_t>> ids;
  bool find_calls = false;  // the answer may call tools
};
PreparedPrompts prepare(ApiRequest& request, bool chat, ServedModel& model,
                        const Exchange& exchange);

}  // namespace fovea::serve
