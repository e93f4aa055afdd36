#include "serve/protocols/ollama_messages.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "serve/request/api_error.h"
#include "serve/request/data_url.h"
#include "serve/request/fields.h"

namespace fovea::serve {
namespace {

// The calls of a conversation whose results have not been read: their functions and ids.
using OpenCalls = std::deque<std::pair<std::string, std::string>>;

// The type of an image is found in its bytes.
Json image_part(const Json& image, const std::string& name) {
  if (!image.is_string()) refuse_value(name, "the bytes of an image in base64", "invalid_type");
  const auto& text = image.get_ref<const std::string&>();
  return {{"type", "image_url"},
          {"image_url", {{"url", is_data_url(text) ? text : "data:image/png;base64," + text}}}};
}

Json content_with_images(const std::string& text, const Json& images, const std::string& name) {
  if (!images.is_array()) refuse_value(name, "an array of images in base64", "invalid_type");
  Json parts = Json::array();
  for (size_t i = 0; i < images.size(); ++i)
    parts.push_back(image_part(images[i], fmt::format("{}[{}]", name, i)));
  if (!text.empty()) parts.push_back({{"type", "text"}, {"text", text}});
  return parts;
}

// Removes a member, and returns it; null if it is missing.
Json take_member(Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  Json value = std::move(*found);
  object.erase(found);
  return value;
}

Json openai_call(Json call, const std::string& name, size_t number, OpenCalls& open) {
  if (!call.is_object() || !call.contains("function") || !call["function"].is_object())
    refuse_value(name, "an object with function", "invalid_type");
  Json& function = call["function"];
  if (!function.value("name", Json()).is_string())
    refuse_value(name + ".function.name", "a string", "invalid_type");
  if (!function.contains("arguments") || function["arguments"].is_null())
    function["arguments"] = Json::object();
  if (!function["arguments"].is_object())
    refuse_value(name + ".function.arguments", "an object", "invalid_type");
  const Json given = call.value("id", Json());
  const std::string id = given.is_string() && !is_neutral(given) ? given.get<std::string>()
                                                                 : fmt::format("call_{}", number);
  open.emplace_back(function["name"].get<std::string>(), id);
  return {{"id", id}, {"type", "function"}, {"function", std::move(function)}};
}

// Names the function and the call of a result: the next one of the function, or else the next one.
void name_call(Json& message, const std::string& name, OpenCalls& open) {
  const Json tool = take_member(message, "tool_name");
  if (!tool.is_null() && !tool.is_string())
    refuse_value(name + ".tool_name", "a string", "invalid_type");
  if (tool.is_string() && !message.contains("name")) message["name"] = tool;
  const Json id = message.value("tool_call_id", Json());
  auto call = open.begin();
  for (auto each = open.begin(); each != open.end(); ++each) {
    const bool named =
        id.is_string() ? Json(each->second) == id : tool.is_string() && Json(each->first) == tool;
    if (!named) continue;
    call = each;
    break;
  }
  if (call == open.end()) return;
  if (!id.is_string()) message["tool_call_id"] = call->second;
  if (!message.contains("name")) message["name"] = call->first;
  open.erase(call);
}

}  // namespace

Json message_with_images(const std::string& text, const Json& images) {
  Json message = {{"role", "user"}, {"content", text}};
  if (!images.empty()) message["content"] = content_with_images(text, images, "images");
  return message;
}

Json openai_messages(const Json& messages) {
  Json all = Json::array();
  OpenCalls open;
  size_t calls = 0;
  for (size_t m = 0; m < messages.size(); ++m) {
    Json message = messages[m];
    const std::string name = fmt::format("messages[{}]", m);
    if (!message.is_object()) refuse_value(name, "an object with role and content", "invalid_type");
    if (message.value("role", Json()).is_string())
      for (char& c : message["role"].get_ref<std::string&>())
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const Json content = message.value("content", Json());
    if (!content.is_null() && !content.is_string())
      refuse_value(name + ".content", "a string", "invalid_type");
    if (const Json images = take_member(message, "images"); !is_neutral(images))
      message["content"] = content_with_images(
          content.is_string() ? content.get<std::string>() : "", images, name + ".images");
    const Json thinking = message.value("thinking", Json());
    if (!thinking.is_null() && !thinking.is_string())
      refuse_value(name + ".thinking", "a string", "invalid_type");
    if (!is_neutral(thinking) && !message.contains("reasoning_content"))
      message["reasoning_content"] = thinking;  // the name that most chat templates read
    const Json given = take_member(message, "tool_calls");
    if (!given.is_null() && !given.is_array())
      refuse_value(name + ".tool_calls", "an array", "invalid_type");
    for (size_t c = 0; c < given.size(); ++c)
      message["tool_calls"].push_back(
          openai_call(given[c], fmt::format("{}.tool_calls[{}]", name, c), calls++, open));
    if (message.value("role", Json()) == "tool") name_call(message, name, open);
    all.push_back(std::move(message));
  }
  return all;
}

}  // namespace fovea::serve
