#pragma once

#include <string>
#include <string_view>

#include "serve/request.h"

namespace fovea::serve {

// The calls in an answer: <tool_call>{...}</tool_call> as Hermes and Qwen write them, or nothing
// but a JSON object, or array of objects, with "name" and "arguments" (or "parameters"), as Llama
// and Mistral do. Other text is left as it is.
struct ToolCalls {
  std::string text;            // what stands before them
  Json calls = Json::array();  // [{"id", "type": "function", "function": {"name", "arguments"}}]
};
ToolCalls find_tool_calls(const std::string& answer);

// JSON that a model wrote, here or in a conversation that a client sends. Discarded where it is not
// JSON or is over the limits of parse_ordered_json.
Json json_or_discarded(std::string_view text);

// Of a streamed answer, lets through what certainly belongs to no call.
class ToolCallFilter {
 public:
  std::string add(std::string_view text);
  const std::string& held() const { return held_; }  // the rest, to be looked at in the end

 private:
  std::string held_;
  bool began_ = false;   // something other than white space came
  bool inside_ = false;  // all that follows belongs to calls
};

// The schema of what a model must write that has to call one of `tools`; `name` = "" for any.
// Throws ApiError where there is none of that name.
std::string call_schema(const Json& tools, const std::string& name);

}  // namespace fovea::serve
