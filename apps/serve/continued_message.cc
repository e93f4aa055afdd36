#include "serve/continued_message.h"

namespace fovea::serve {
namespace {

constexpr const char* kField = "continue_final_message";
constexpr std::string_view kMark = "\xEF\xB7\x92";  // the noncharacter U+FDD2

[[noreturn]] void refuse(const std::string& what) {
  throw ApiError{400, std::string(kField) + ": " + what, kField, "invalid_value"};
}

}  // namespace

void mark_end(Json& messages) {
  Json& last = messages.back();
  const char* const expected = "expected a last message with a text of the assistant";
  if (last["role"] != "assistant" || !last.contains("content")) refuse(expected);
  Json* content = &last["content"];
  if (content->is_array() && !content->empty() && content->back().contains("text"))
    content = &content->back()["text"];
  if (!content->is_string()) refuse(expected);
  *content = content->get<std::string>() + std::string(kMark);
}

std::string until_end(std::string text) {
  const size_t end = text.rfind(kMark);
  if (end == std::string::npos)
    refuse("the chat template does not show the last message; expected false");
  text.resize(end);
  return text;
}

}  // namespace fovea::serve
