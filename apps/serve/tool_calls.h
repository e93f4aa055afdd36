#pragma once

#include <string>
#include <string_view>

#include "serve/request.h"

namespace fovea::serve {

// Tool calls parsed from an answer: <tool_call>{...}</tool_call> as written by Hermes and Qwen, or
// an answer that consists of a JSON object or array of objects with "name" and "arguments" (or
// "parameters"), as written by Llama and Mistral. Other text is kept.
struct ToolCalls {
  std::string text;            // the text before the calls
  Json calls = Json::array();  // [{"id", "type": "function", "function": {"name", "arguments"}}]
};
ToolCalls find_tool_calls(const std::string& answer);

// Parses JSON written by a model. Returns a discarded value if it is invalid or exceeds the limits
// of parse_ordered_json.
Json json_or_discarded(std::string_view text);

// Passes on the streamed text that cannot belong to a tool call.
class ToolCallFilter {
 public:
  std::string add(std::string_view text);
  const std::string& held() const { return held_; }  // the withheld text, to be parsed at the end

 private:
  std::string held_;
  bool began_ = false;   // something other than white space arrived
  bool inside_ = false;  // all further text belongs to calls
};

// Returns the JSON Schema of a call of the tool `name`, or of any tool if `name` is empty. Throws
// ApiError if there is no such tool.
std::string call_schema(const Json& tools, const std::string& name);

}  // namespace fovea::serve
