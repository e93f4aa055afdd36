#pragma once

#include "fovea/chat.h"

namespace fovea {

// Finds out how a template writes calls by rendering a conversation with one: templates differ, and
// those that expect another form fail, or silently leave the call out. Returns the first form that
// shows the call's arguments, or the default if no form does.
ChatFormat::Calls probe_calls(const std::function<std::string(const ChatRequest&)>& render);

}  // namespace fovea
