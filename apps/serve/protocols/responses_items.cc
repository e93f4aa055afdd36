// The items and tools of OpenAI's Responses API in the form of chats.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/base64.h"
#include "serve/generation/custom_tools.h"
#include "serve/protocols/responses.h"
#include "serve/request/api_error.h"

namespace fovea::serve {
namespace {

// Content is a text, or a list of parts.
Json content_parts(const Json& content, const std::string& location) {
  if (content.is_string()) return content;
  if (!content.is_array()) refuse_value(location, "a text or a list of parts");
  Json parts = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", location, i);
    const Json type = content[i].is_object() ? content[i].value("type", Json()) : Json();
    if (type == "input_text" || type == "output_text" || type == "text")
      parts.push_back({{"type", "text"}, {"text", member_text(content[i], "text", at)}});
    else if (type == "refusal")
      parts.push_back({{"type", "text"}, {"text", member_text(content[i], "refusal", at)}});
    else if (type == "input_image")
      parts.push_back({{"type", "image_url"},
                       {"image_url", {{"url", member_text(content[i], "image_url", at)}}}});
    else
      refuse_value(at + ".type", "input_text, input_image, output_text or refusal");
  }
  if (parts.size() == 1 && parts[0]["type"] == "text") return parts[0]["text"];
  if (parts.empty()) return "";
  return parts;
}

// The text of a reasoning item: what the server itself put into encrypted_content, else its content
// or its summary.
std::string reasoning_text(const Json& item) {
  const Json encrypted = item.value("encrypted_content", Json());
  if (encrypted.is_string())
    if (const auto text = from_base64(encrypted.get_ref<const std::string&>())) return *text;
  for (const char* key : {"content", "summary"}) {
    std::string all;
    const Json parts = item.value(key, Json());
    for (const Json& part : parts.is_array() ? parts : Json::array())
      if (part.is_object() && part.value("text", Json()).is_string())
        all += (all.empty() ? "" : "\n\n") + part["text"].get<std::string>();
    if (!all.empty()) return all;
  }
  return {};
}

// Joins the items of the assistant - reasoning, text, calls - to one message.
class Conversation {
 public:
  Json messages = Json::array();

  void add(const Json& item, const std::string& at, std::vector<std::string>& warnings) {
    if (!item.is_object()) refuse_value(at, "an object");
    const Json type = item.value("type", Json("message"));
    if (type == "message")
      add_message(item, at);
    else if (type == "reasoning")
      add_reasoning(item);
    else if (type == "function_call")
      add_call(item, "arguments", at);
    else if (type == "custom_tool_call")
      add_call(item, "input", at);
    else if (type == "function_call_output" || type == "custom_tool_call_output")
      add_output(item, at);
    else if (type == "item_reference")
      warnings.emplace_back("references to items are left out: nothing is stored");
    else if (is_hosted(type))
      warnings.push_back("items of type " + type.get<std::string>() + " are left out");
    else
      refuse_value(at + ".type", "message, reasoning, function_call or function_call_output");
  }

 private:
  // What OpenAI's own tools have done.
  static bool is_hosted(const Json& type) {
    static const std::vector<std::string> kNames = {"web_search_call",
                                                    "file_search_call",
                                                    "image_generation_call",
                                                    "code_interpreter_call",
                                                    "mcp_list_tools",
                                                    "mcp_call",
                                                    "compaction"};
    return type.is_string() && std::ranges::count(kNames, type.get<std::string>()) > 0;
  }

  Json& assistant() {
    if (messages.empty() || messages.back()["role"] != "assistant")
      messages.push_back({{"role", "assistant"}, {"content", ""}});
    return messages.back();
  }

  void add_message(const Json& item, const std::string& at) {
    const std::string role = member_text(item, "role", at);
    Json content = content_parts(item.value("content", Json()), at + ".content");
    if (role != "assistant") {
      if (role != "user" && role != "system" && role != "developer")
        refuse_value(at + ".role", "user, assistant, system or developer");
      messages.push_back({{"role", role}, {"content", std::move(content)}});
      return;
    }
    Json& message = assistant();
    if (message.contains("tool_calls") || !is_neutral(message["content"])) {
      messages.push_back({{"role", role}, {"content", std::move(content)}});
    } else {
      message["content"] = std::move(content);
    }
  }

  void add_reasoning(const Json& item) {
    const std::string text = reasoning_text(item);
    if (text.empty()) return;
    if (!messages.empty() && messages.back()["role"] == "assistant")
      messages.push_back({{"role", "assistant"}, {"content", ""}});
    assistant()["reasoning_content"] = text;
  }

  void add_call(const Json& item, const char* key, const std::string& at) {
    std::string arguments = member_text(item, key, at);
    if (std::string_view(key) == "input") arguments = custom_arguments(arguments);
    Json& message = assistant();
    if (!message.contains("tool_calls")) message["tool_calls"] = Json::array();
    message["tool_calls"].push_back(
        {{"id", member_text(item, "call_id", at)},
         {"type", "function"},
         {"function", {{"name", member_text(item, "name", at)}, {"arguments", arguments}}}});
  }

  void add_output(const Json& item, const std::string& at) {
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", member_text(item, "call_id", at)},
                        {"content", content_parts(item.value("output", Json()), at + ".output")}});
  }
};

// Returns a function or a custom tool in the form of chats.
Json chat_tool(const Json& tool, const std::string& at, ResponsesRequest& request) {
  if (tool.value("type", Json()) == "custom") {
    const Json format = tool.value("format", Json());
    return custom_function(tool, format, at, at + ".format", request);
  }
  Json function = {{"name", member_text(tool, "name", at)},
                   {"description", tool.value("description", Json(""))},
                   {"parameters", tool.value("parameters", Json())}};
  if (tool.value("strict", Json()) == true) function["strict"] = true;
  return {{"type", "function"}, {"function", std::move(function)}};
}

}  // namespace

Json messages_of_items(const Json& instructions, const Json& input,
                       std::vector<std::string>& warnings) {
  Conversation conversation;
  if (instructions.is_string() && !is_neutral(instructions))
    conversation.messages.push_back({{"role", "system"}, {"content", instructions}});
  if (input.is_string()) {
    conversation.messages.push_back({{"role", "user"}, {"content", input}});
  } else if (input.is_array()) {
    for (size_t i = 0; i < input.size(); ++i)
      conversation.add(input[i], fmt::format("input[{}]", i), warnings);
  } else {
    refuse_value("input", "a text or a list of items");
  }
  // Clients ask for one token of nothing to find whether the server runs.
  if (conversation.messages.empty())
    conversation.messages.push_back({{"role", "user"}, {"content", ""}});
  return std::move(conversation.messages);
}

Json tools_of_responses(const Json& given, std::vector<std::string>& left_out,
                        ResponsesRequest& request) {
  Json tools = Json::array();
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string at = fmt::format("tools[{}]", i);
    const Json type = given[i].is_object() ? given[i].value("type", Json()) : Json();
    if (type == "function" || type == "custom") {
      tools.push_back(chat_tool(given[i], at, request));
    } else if (type == "namespace") {
      const Json inner = given[i].value("tools", Json::array());
      for (size_t n = 0; inner.is_array() && n < inner.size(); ++n) {
        const std::string within = fmt::format("{}.tools[{}]", at, n);
        if (!inner[n].is_object()) refuse_value(within, "an object with a name");
        tools.push_back(chat_tool(inner[n], within, request));
        request.namespaces[tools.back()["function"]["name"]] = member_text(given[i], "name", at);
      }
    } else if (type.is_string()) {
      left_out.push_back(type);
    } else {
      refuse_value(at + ".type", "function or custom");
    }
  }
  return tools;
}

}  // namespace fovea::serve
