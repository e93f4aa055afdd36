#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "serve/generation/generation_format.h"
#include "serve/routes/response_ids.h"

namespace fovea::serve {

// The functions in a request's tools. Throws ApiError if the parameters of one are not a schema.
std::vector<text::CallableFunction> functions_of(const Json& tools);

// Names the types of tools that the server does not run in a header of the response and in a
// warning. Throws ApiError if tool_choice names one of them.
void name_left_out_tools(const std::vector<std::string>& types, ChatRequest& request);

// Returns a new id of a call: nine letters and digits, which all known templates take, or a longer
// one.
std::string new_call_id(bool short_id, ResponseIds& ids);
// Returns an id of nine letters and digits, which is the same for the same text.
std::string short_call_id(std::string_view text);

// Appends a part to a message. A new call has a new id.
void add_part(Message& message, const text::MessagePart& part, bool short_ids, ResponseIds& ids);
// Returns the message that a generated text is.
Message message_of(const std::string& generated, const text::MessageRules& rules, bool short_ids);

// Returns the calls as OpenAI's API has them: [{"id", "type", "function": {"name", "arguments"}}],
// or, of custom tools, [{"id", "type", "custom": {"name", "input"}}].
Json calls_json(const std::vector<Call>& calls, const std::set<std::string>& custom_tools = {});

}  // namespace fovea::serve
