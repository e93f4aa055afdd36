#pragma once

#include <vector>

#include "serve/request/request.h"

namespace fovea::serve {

// Returns the weighted rewards for which a grader of a fine-tuning job stands: OpenAI's
// string_check and multi, or numeric, regex, length, json_schema and reward_model (docs/serve.md).
// A grader names no program and no path. Throws ApiError if it is invalid.
std::vector<tuning::JobReward> rewards_of(const Json& grader);

}  // namespace fovea::serve
