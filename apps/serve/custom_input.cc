#include "serve/custom_input.h"

#include <algorithm>

#include "serve/tool_calls.h"

namespace fovea::serve {
namespace {

// Returns the length of {"input": " at the beginning of the arguments, with any white space; 0 = it
// is not there.
size_t beginning(const std::string& arguments) {
  size_t at = 0;
  for (const std::string_view part : {"{", "\"input\"", ":", "\""}) {
    at = std::min(arguments.find_first_not_of(" \t\r\n", at), arguments.size());
    if (arguments.compare(at, part.size(), part) != 0) return 0;
    at += part.size();
  }
  return at;
}

}  // namespace

std::string CustomInput::add(std::string_view arguments) {
  held_ += arguments;
  if (!inside_) {
    const size_t begin = beginning(held_);
    held_.erase(0, begin);
    inside_ = begin > 0;
  }
  if (!inside_ || ended_) return {};
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
