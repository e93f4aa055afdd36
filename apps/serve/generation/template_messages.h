#pragma once

#include "fovea/text/calls.h"
#include "serve/request/request.h"

namespace fovea::serve {

// Returns the messages of a request as the model's chat template expects them: roles, contents,
// arguments and ids of calls. Contents stay parts if `reads_images`; otherwise they are joined.
Json template_messages(const Json& messages, const text::ChatFormat& format, bool reads_images);

// Describes tools in the system message, for a template that knows no tools. Writes calls and their
// results as texts in the format "hermes", unless the template `shows_calls`.
void describe_calls(Json& messages, const Json& tools, const text::CallFormat& format,
                    bool shows_calls);

// Replaces missing contents, which some templates cannot read, by empty ones, unless the template
// would then omit the message's calls. Returns whether there was any.
bool fill_contents(Json& messages, const text::TemplateHabits& habits);

}  // namespace fovea::serve
