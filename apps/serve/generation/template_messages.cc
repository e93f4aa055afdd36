#include "serve/generation/template_messages.h"

#include <algorithm>

#include "serve/generation/tool_calls.h"

namespace fovea::serve {
namespace {

constexpr const char* kOldCallId = "call_0";  // of the older form of a call, which has no id

void join_parts(Json& message) {
  const auto content = message.find("content");
  if (content == message.end() || !content->is_array()) return;
  std::string text;
  for (const Json& part : *content) {
    if (!part.contains("text"))
      throw ApiError{400, "messages: the model reads no images; expected parts of type text",
                     "messages", "unsupported"};
    text += (text.empty() ? "" : "\n") + part["text"].get<std::string>();
  }
  *content = text;
}

// Gives the older form of a call, and of its result, the form of today.
void renew(Json& message) {
  if (message["role"] == "function") {
    message["role"] = "tool";
    if (!message.contains("tool_call_id")) message["tool_call_id"] = kOldCallId;
  }
  if (message.contains("function_call") && message["function_call"].is_object()) {
    message["tool_calls"] = Json::array(
        {{{"id", kOldCallId}, {"type", "function"}, {"function", message["function_call"]}}});
    message.erase("function_call");
  }
}

bool has_calls(const Json& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array() && !calls->empty();
}

bool is_blank(const Json& message) {
  const auto content = message.find("content");
  if (content == message.end() || content->empty()) return true;  // null, or no parts
  const auto* text = content->get_ptr<const std::string*>();
  return text != nullptr && text->empty();
}

void set_arguments(Json& call, const text::TemplateHabits& habits) {
  if (!call.is_object() || !call.contains("function")) return;
  Json& function = call["function"];
  if (!function.is_object() || !function.contains("arguments")) return;
  Json& arguments = function["arguments"];
  if (habits.text_arguments) {
    if (!arguments.is_string()) arguments = arguments.dump();
    return;
  }
  if (!arguments.is_string()) return;
  Json parsed = json_or_discarded(arguments.get_ref<const std::string&>());
  if (parsed.is_object()) arguments = std::move(parsed);
}

// Other servers' ids are replaced if the template demands nine letters and digits.
void set_id(Json& holder, const char* key, const text::TemplateHabits& habits) {
  if (!holder.is_object() || habits.long_ids) return;
  const auto id = holder.find(key);
  if (id == holder.end() || !id->is_string()) return;
  const auto& text = id->get_ref<const std::string&>();
  const bool fits =
      text.size() == 9 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      });
  if (!fits) *id = short_call_id(text);
}

// Appends a message with calls with the content for which the template shows them.
void append_calls(Json message, const text::TemplateHabits& habits, Json& all) {
  const bool none = habits.calls_without_content, empty = habits.calls_with_empty;
  if (!is_blank(message) && !habits.calls_with_text && (none || empty)) {
    Json without_calls = message;
    without_calls.erase("tool_calls");
    all.push_back(std::move(without_calls));
    message["content"] = nullptr;
  }
  if (is_blank(message)) {
    const bool missing = !message.contains("content") || message["content"].is_null();
    if (none && (!empty || missing))
      message["content"] = nullptr;
    else if (empty && !none)
      message["content"] = "";
  }
  all.push_back(std::move(message));
}

std::string content_of(const Json& message) {
  return is_blank(message) ? "" : message["content"].get<std::string>();
}

// Returns the content of a message and its calls, each as an object between marks.
std::string text_of_calls(const Json& message) {
  std::string text = content_of(message);
  for (const Json& call : message["tool_calls"]) {
    if (!call.is_object() || !call.contains("function")) continue;
    const Json& function = call["function"];
    Json arguments = function.value("arguments", Json::object());
    if (arguments.is_string()) arguments = json_or_discarded(arguments.get<std::string>());
    if (!arguments.is_object()) arguments = Json::object();
    const Json written = {{"name", function.value("name", Json())}, {"arguments", arguments}};
    text += (text.empty() ? "" : "\n") + std::string("<tool_call>\n") + json_line(written) +
            "\n</tool_call>";
  }
  return text;
}

// Appends the result of a call: a message of the user, which has all results after a message.
void add_result(const Json& message, Json& all) {
  const std::string begin = "<tool_response>\n";
  const std::string text = begin + content_of(message) + "\n</tool_response>";
  const bool more =
      !all.empty() && all.back()["role"] == "user" && content_of(all.back()).starts_with(begin);
  if (more)
    all.back()["content"] = content_of(all.back()) + "\n" + text;
  else
    all.push_back({{"role", "user"}, {"content", text}});
}

// Puts the text of a system message before that of the first user message, where models without
// such a role are trained to read it.
void move_system_text(Json& messages) {
  if (messages.size() < 2 || messages[0]["role"] != "system") return;
  Json& user = messages[1];
  const Json system = messages[0].value("content", Json());
  if (user["role"] != "user" || !system.is_string() || !user.contains("content")) return;
  const std::string text = system.get<std::string>() + "\n\n";
  Json& content = user["content"];
  if (content.is_string())
    content = text + content.get<std::string>();
  else if (content.is_array() && !content.empty() && content[0].contains("text"))
    content[0]["text"] = text + content[0]["text"].get<std::string>();
  else if (content.is_array())
    content.insert(content.begin(), Json{{"type", "text"}, {"text", text}});
  else
    return;
  messages.erase(messages.begin());
}

}  // namespace

Json template_messages(const Json& messages, const text::ChatFormat& format, bool reads_images) {
  Json all = Json::array();
  for (Json message : messages) {
    if (message["role"] == "developer" && !format.knows_developer) message["role"] = "system";
    if (!reads_images) join_parts(message);
    renew(message);
    set_id(message, "tool_call_id", format.habits);
    if (!has_calls(message)) {
      all.push_back(std::move(message));
      continue;
    }
    for (Json& call : message["tool_calls"]) {
      set_arguments(call, format.habits);
      set_id(call, "id", format.habits);
    }
    append_calls(std::move(message), format.habits, all);
  }
  if (!format.habits.shows_system) move_system_text(all);
  return all;
}

void describe_calls(Json& messages, const Json& tools, const text::CallFormat& format,
                    bool shows_calls) {
  std::string list;
  for (const Json& tool : tools) list += (list.empty() ? "" : "\n") + json_line(tool);
  Json all = Json::array();
  for (Json message : messages) {
    renew(message);
    join_parts(message);
    if (!shows_calls && has_calls(message)) {
      message = {{"role", "assistant"}, {"content", text_of_calls(message)}};
    } else if (!shows_calls && message["role"] == "tool") {
      add_result(message, all);
      continue;
    }
    all.push_back(std::move(message));
  }
  const std::string description = text::describe_tools(list, format);
  const bool system = !all.empty() && (all[0]["role"] == "system" || all[0]["role"] == "developer");
  if (system && !is_blank(all[0]))
    all[0]["content"] = all[0]["content"].get<std::string>() + "\n\n" + description;
  else if (system)
    all[0]["content"] = description;
  else
    all.insert(all.begin(), Json{{"role", "system"}, {"content", description}});
  messages = std::move(all);
}

bool fill_contents(Json& messages, const text::TemplateHabits& habits) {
  const bool only_null = habits.calls_without_content && !habits.calls_with_empty;
  bool any = false;
  for (Json& message : messages) {
    if (message.contains("content") && !message["content"].is_null()) continue;
    if (only_null && has_calls(message)) continue;
    message["content"] = "";
    any = true;
  }
  return any;
}

}  // namespace fovea::serve
