#include "serve/generation/custom_input.h"

#include <algorithm>

#include "serve/generation/tool_calls.h"

namespace fovea::serve {
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
