// Messages and tools of Anthropic's API in OpenAI's form.

#include <fmt/format.h>

#include "serve/protocols/anthropic.h"
#include "serve/request/api_error.h"

namespace fovea::serve {
namespace {

// Claude Code begins its system prompt with a block that changes with every request, so that no
// prefix of two requests would be equal.
bool is_billing_header(const std::string& text) {
  return text.starts_with("x-anthropic-billing-header");
}

std::string system_text(const Json& system) {
  if (system.is_string()) return system;
  if (!system.is_array()) refuse_value("system", "a text or blocks of text");
  std::string all;
  for (size_t i = 0; i < system.size(); ++i) {
    const std::string location = fmt::format("system[{}]", i);
    if (!system[i].is_object()) refuse_value(location, "a block of text");
    const std::string text = member_text(system[i], "text", location);
    if (is_billing_header(text)) continue;
    all += (all.empty() ? "" : "\n\n") + text;
  }
  return all;
}

// {"type": "base64", "media_type", "data"} or {"type": "url", "url"}
Json image_part(const Json& block, const std::string& location) {
  const Json source = block.value("source", Json());
  if (!source.is_object()) refuse_value(location + ".source", "an object");
  if (source.value("type", Json()) == "url")
    return {{"type", "image_url"}, {"image_url", {{"url", member_text(source, "url", location)}}}};
  return {{"type", "image_url"},
          {"image_url",
           {{"url", "data:" + member_text(source, "media_type", location) + ";base64," +
                        member_text(source, "data", location)}}}};
}

// A document in plain text.
std::string document_text(const Json& block, const std::string& location) {
  const Json source = block.value("source", Json());
  if (!source.is_object() || source.value("type", Json()) != "text")
    refuse_value(location + ".source", "type text: other documents are not read");
  const std::string title = block.value("title", Json()).is_string() ? block["title"] : "";
  return (title.empty() ? "" : title + "\n") + member_text(source, "data", location);
}

// Returns the parts of the content of a result or of a user, which may be a text.
Json parts_of(const Json& content, const std::string& location) {
  if (content.is_null()) return Json::array();
  if (content.is_string()) return Json::array({{{"type", "text"}, {"text", content}}});
  if (!content.is_array()) refuse_value(location, "a text or blocks");
  Json parts = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& block = content[i];
    const std::string at = fmt::format("{}[{}]", location, i);
    const Json type = block.is_object() ? block.value("type", Json()) : Json();
    if (type == "text")
      parts.push_back({{"type", "text"}, {"text", member_text(block, "text", at)}});
    else if (type == "image")
      parts.push_back(image_part(block, at));
    else if (type == "document")
      parts.push_back({{"type", "text"}, {"text", document_text(block, at)}});
    else if (type != "tool_result")
      refuse_value(at + ".type", "text, image, document or tool_result");
  }
  return parts;
}

// A content of one text is a string, which every template reads.
Json content_of(Json parts) {
  if (parts.size() == 1 && parts[0]["type"] == "text") return parts[0]["text"];
  if (parts.empty()) return "";
  return parts;
}

void add_results(const Json& content, const std::string& location, Json& messages) {
  for (size_t i = 0; content.is_array() && i < content.size(); ++i) {
    const Json& block = content[i];
    if (!block.is_object() || block.value("type", Json()) != "tool_result") continue;
    const std::string at = fmt::format("{}[{}]", location, i);
    Json parts = parts_of(block.value("content", Json()), at + ".content");
    if (block.value("is_error", Json()) == true)
      parts.insert(parts.begin(), Json{{"type", "text"}, {"text", "Error:"}});
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", member_text(block, "tool_use_id", at)},
                        {"content", content_of(std::move(parts))}});
  }
}

void add_call(const Json& block, const std::string& at, Json& calls) {
  const Json input = block.value("input", Json::object());
  if (!input.is_object()) refuse_value(at + ".input", "an object");
  calls.push_back(
      {{"id", member_text(block, "id", at)},
       {"type", "function"},
       {"function", {{"name", member_text(block, "name", at)}, {"arguments", input.dump()}}}});
}

Json assistant_message(const Json& content, const std::string& location) {
  Json message = {{"role", "assistant"}, {"content", ""}};
  if (content.is_string()) return {{"role", "assistant"}, {"content", content}};
  if (!content.is_array()) refuse_value(location, "a text or blocks");
  std::string text, reasoning;
  Json calls = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& block = content[i];
    const std::string at = fmt::format("{}[{}]", location, i);
    const Json type = block.is_object() ? block.value("type", Json()) : Json();
    if (type == "text")
      text += member_text(block, "text", at);
    else if (type == "thinking")
      reasoning += member_text(block, "thinking", at);
    else if (type == "tool_use")
      add_call(block, at, calls);
    else if (type != "redacted_thinking")
      refuse_value(at + ".type", "text, thinking, redacted_thinking or tool_use");
  }
  message["content"] = text;
  if (!reasoning.empty()) message["reasoning_content"] = reasoning;
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

}  // namespace

Json messages_of_anthropic(const Json& system, const Json& given) {
  Json messages = Json::array();
  if (!is_neutral(system))
    if (const std::string text = system_text(system); !text.empty())
      messages.push_back({{"role", "system"}, {"content", text}});
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string location = fmt::format("messages[{}]", i);
    if (!given[i].is_object()) refuse_value(location, "an object");
    const Json role = given[i].value("role", Json()), content = given[i].value("content", Json());
    if (role == "assistant") {
      messages.push_back(assistant_message(content, location + ".content"));
      continue;
    }
    if (role != "user" && role != "system") refuse_value(location + ".role", "user or assistant");
    add_results(content, location + ".content", messages);
    Json parts = parts_of(content, location + ".content");
    if (!parts.empty() || !content.is_array())
      messages.push_back({{"role", role}, {"content", content_of(std::move(parts))}});
  }
  return messages;
}

Json tools_of_anthropic(const Json& given, std::vector<std::string>& left_out) {
  Json tools = Json::array();
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string location = fmt::format("tools[{}]", i);
    if (!given[i].is_object()) refuse_value(location, "an object");
    const Json type = given[i].value("type", Json());
    if (type.is_string() && type != "custom") {
      left_out.push_back(type);
      continue;
    }
    Json function = {{"name", member_text(given[i], "name", location)},
                     {"description", given[i].value("description", Json(""))},
                     {"parameters", given[i].value("input_schema", Json())}};
    if (given[i].value("strict", Json()) == true) function["strict"] = true;
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return tools;
}

}  // namespace fovea::serve
