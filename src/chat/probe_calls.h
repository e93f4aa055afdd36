#pragma once

#include "fovea/chat.h"

namespace fovea {

// Finds out how a template writes calls by rendering a conversation with one: templates differ, and
// those that expect another form fail, or leave the call out without a word. The first form that
// shows the call's name and arguments is used; if none does, the template knows no calls.
ChatFormat::Calls probe_calls(const std::function<std::string(const ChatRequest&)>& render);

}  // namespace fovea
