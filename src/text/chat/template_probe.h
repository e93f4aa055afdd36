#pragma once

#include <functional>
#include <string>

#include "fovea/text/chat.h"

namespace fovea::text {

// Returns what the template expects, by rendering small conversations. `knows_parts`: contents are
// lists of parts.
TemplateHabits probe_template(const std::function<std::string(const ChatRequest&)>& render,
                              bool knows_parts);

}  // namespace fovea::text
