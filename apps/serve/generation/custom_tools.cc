#include "serve/generation/custom_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "fovea/core/excerpt.h"
#include "serve/generation/tool_calls.h"
#include "serve/request/api_error.h"

namespace fovea::serve {
namespace {

// Describes the grammar of an input to the model. A regular expression, with anchors or without,
// matches the whole input.
void add_grammar(const Json& grammar, const std::string& at, Json& function,
                 std::vector<std::string>& warnings) {
  const std::string syntax = member_text(grammar, "syntax", at);
  const std::string definition = member_text(grammar, "definition", at);
  if (syntax == "regex") {
    std::string regex = definition.substr(definition.starts_with('^') ? 1 : 0);
    if (regex.ends_with('$') && !regex.ends_with("\\$")) regex.pop_back();
    function["parameters"]["properties"]["input"]["pattern"] = "^(?:" + regex + ")$";
    function["strict"] = true;  // an expression that cannot be enforced is an error
  } else if (syntax == "lark") {
    warnings.push_back(fmt::format("tools: the lark grammar of \"{}\" is not enforced",
                                   excerpt(function["name"].get<std::string>(), 64)));
  } else {
    refuse_value(at + ".syntax", "lark or regex");
  }
  function["description"] =
      fmt::format("{}\n\nThe input has this grammar ({}):\n{}",
                  function["description"].get<std::string>(), syntax, definition);
}

// A custom tool of a chat: {"name", "description", "format"}, in which a grammar is an object of
// its own.
Json converted_tool(const Json& tool, const std::string& at, ChatRequest& request) {
  const Json custom = tool.value("custom", Json());
  if (!custom.is_object()) refuse_value(at + ".custom", "an object with a name");
  Json format = custom.value("format", Json());
  const bool grammar = format.is_object() && format.value("grammar", Json()).is_object();
  if (grammar) {
    const Json inner = format["grammar"];
    format.update(inner);
  }
  return custom_function(custom, format, at + ".custom",
                         at + (grammar ? ".custom.format.grammar" : ".custom.format"), request);
}

// Calls of custom tools: {"id", "type": "custom", "custom": {"name", "input"}}.
void convert_calls(Json& message, const std::string& at) {
  if (!message.is_object() || !message.contains("tool_calls") || !message["tool_calls"].is_array())
    return;
  Json& calls = message["tool_calls"];
  for (size_t i = 0; i < calls.size(); ++i) {
    Json& call = calls[i];
    if (!call.is_object() || call.value("type", Json()) != "custom") continue;
    const std::string location = fmt::format("{}.tool_calls[{}].custom", at, i);
    const Json custom = call.value("custom", Json());
    if (!custom.is_object()) refuse_value(location, "an object with a name and an input");
    call["type"] = "function";
    call["function"] = {{"name", member_text(custom, "name", location)},
                        {"arguments", custom_arguments(member_text(custom, "input", location))}};
    call.erase("custom");
  }
}

}  // namespace

Json custom_function(const Json& tool, const Json& format, const std::string& at,
                     const std::string& at_format, ChatRequest& request) {
  const Json description = tool.value("description", Json());
  const Json input = {{"type", "string"}, {"description", "the input of the tool: free text"}};
  Json function = {{"name", member_text(tool, "name", at)},
                   {"description", description.is_string() ? description : Json("")},
                   {"parameters",
                    {{"type", "object"},
                     {"properties", {{"input", input}}},
                     {"required", {"input"}},
                     {"additionalProperties", false}}}};
  const Json type = format.is_object() ? format.value("type", Json()) : Json();
  if (type == "grammar")
    add_grammar(format, at_format, function, request.warnings);
  else if (!format.is_null() && type != "text")
    refuse_value(at_format, "type text, or type grammar with syntax and definition");
  request.custom_tools.insert(function["name"].get<std::string>());
  return {{"type", "function"}, {"function", std::move(function)}};
}

void convert_custom_tools(ChatRequest& request) {
  Json tools = Json::array();
  std::vector<std::string> left_out;
  for (size_t i = 0; i < request.tools.size(); ++i) {
    Json& tool = request.tools[i];
    const Json type = tool.is_object() ? tool.value("type", Json()) : Json();
    if (type == "custom")
      tools.push_back(converted_tool(tool, fmt::format("tools[{}]", i), request));
    else if (type.is_string() && type != "function")
      left_out.push_back(type);
    else
      tools.push_back(std::move(tool));
  }
  request.tools = std::move(tools);
  Json& choice = request.tool_choice;
  if (choice.is_object() && choice.value("type", Json()) == "custom")
    choice = {{"type", "function"}, {"function", choice.value("custom", Json())}};
  if (!left_out.empty()) name_left_out_tools(left_out, request);
  for (size_t i = 0; i < request.messages.size(); ++i)
    convert_calls(request.messages[i], fmt::format("messages[{}]", i));
}

std::string custom_arguments(std::string_view input) { return Json{{"input", input}}.dump(); }

std::string CustomInput::add(std::string_view arguments) {
  held_ += arguments;
  if (!inside_) {
    constexpr std::string_view kKey = "\"input\"";
    const size_t key = held_.find(kKey);
    if (key == held_.npos) return {};
    const size_t begin = held_.find_first_not_of(" \t\r\n:", key + kKey.size());
    if (begin == held_.npos || held_[begin] != '"') return {};
    held_.erase(0, begin + 1);
    inside_ = true;
  }
  if (ended_) return {};
  size_t end = 0;
  while (end < held_.size() && held_[end] != '"') end += held_[end] == '\\' ? 2 : 1;
  ended_ = end < held_.size();
  end = std::min(end, held_.size());
  // The last escape, or pair of escapes, may not be complete yet.
  constexpr size_t kLongest = 12;  // such as \ud83d\ude00
  for (const size_t least = end - std::min(end, kLongest);; --end) {
    const Json text = json_or_discarded("\"" + held_.substr(0, end) + "\"");
    if (!text.is_string() && end > least) continue;
    held_.erase(0, end);
    return text.is_string() ? text.get<std::string>() : "";
  }
}

std::string CustomInput::finish() {
  if (inside_) return {};
  const Json whole = json_or_discarded(held_);
  const Json input = whole.is_object() ? whole.value("input", Json()) : Json();
  return input.is_string() ? input.get<std::string>() : held_;
}

std::string custom_input(std::string_view arguments) {
  CustomInput reader;
  const std::string input = reader.add(arguments);
  return input + reader.finish();
}

}  // namespace fovea::serve
