#pragma once

#include <string>

#include "serve/models/served_model.h"

namespace fovea::serve {

// Sets the variables of chat templates that turn reasoning on or off. A warning is added if the
// model's template reads none.
void switch_reasoning(bool on, const ServedModel& model, ChatRequest& request);

// Returns whether a word is one of those of set_effort().
bool is_effort(const std::string& word);
// Sets the amount of reasoning by a word: none, minimal, low, medium, high, xhigh or max. Without a
// variable of the template, it limits the number of tokens. Throws ApiError, naming `field`, for
// another word.
void set_effort(const std::string& effort, const std::string& field, const ServedModel& model,
                ChatRequest& request);

}  // namespace fovea::serve
