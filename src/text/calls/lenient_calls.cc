#include "calls/lenient_calls.h"

#include <algorithm>
#include <array>
#include <span>

#include "calls/lenient_value.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;
using Marks = std::span<const std::string_view>;

// Marks before and after JSON objects with calls.
constexpr std::array<std::string_view, 16> kOpening = {
    "<tool_call>",     "<|tool_call|>",     "[TOOL_CALLS]",     "functools",
    "<TOOLCALL>",      "<|python_tag|>",    "<|START_ACTION|>", "<tool_calls>",
    "<function_call>", "<|function_call|>", "<|action_start|>", "<|plugin|>",
    "Action:",         "```json",           "```tool_call",     "```"};
constexpr std::array<std::string_view, 7> kClosing = {
    "</tool_call>",  "<|/tool_call|>", "</TOOLCALL>", "<|END_ACTION|>",
    "</tool_calls>", "<|action_end|>", "```"};

// Marks up to this size, and "Action:", occur in ordinary texts.
constexpr size_t kOrdinary = 7;

bool take_one(std::string_view text, size_t& at, Marks marks) {
  const size_t begin = after_space(text, at);
  for (const std::string_view mark : marks) {
    if (!text.substr(begin).starts_with(mark)) continue;
    at = begin + mark.size();
    return true;
  }
  return false;
}

void skip(std::string_view text, size_t& at, std::string_view characters) {
  at = std::min(text.find_first_not_of(characters, at), text.size());
}

const Signature* function_of(const ordered_json& call, const std::vector<Signature>& functions) {
  for (const char* key : {"name", "tool_name"}) {
    const auto name = call.find(key);
    if (name == call.end() || !name->is_string()) continue;
    const auto found =
        std::ranges::find(functions, name->get_ref<const std::string&>(), &Signature::name);
    if (found != functions.end()) return &*found;
  }
  return nullptr;
}

// Appends the call that an object describes. Returns false if it does not describe a call.
bool add_call(const ordered_json& object, const std::vector<Signature>& functions,
              std::vector<MessagePart>& parts) {
  if (!object.is_object()) return false;
  if (object.contains("function") && object["function"].is_object())
    return add_call(object["function"], functions, parts);
  const Signature* const function = function_of(object, functions);
  if (function == nullptr) return false;
  for (const char* key : {"arguments", "parameters"}) {
    if (!object.contains(key)) continue;
    ordered_json arguments = object[key];
    if (arguments.is_string()) {
      const std::string text = arguments;
      size_t at = 0;
      arguments = lenient_value(text, at).value_or(ordered_json());
    }
    if (!arguments.is_object()) return false;
    parts.push_back({MessagePart::call, json_line(arguments), parts.size(), function->name, true});
    return true;
  }
  return false;
}

// Reads the objects at `at`, alone or in a list. Returns false if the first one is no call.
bool read_objects(std::string_view text, size_t& at, const std::vector<Signature>& functions,
                  std::vector<MessagePart>& parts) {
  size_t end = at;
  skip(text, end, " \t\r\n[");
  bool any = false;
  while (end < text.size() && text[end] == '{') {
    const auto object = lenient_value(text, end);
    if (!object || !add_call(*object, functions, parts)) break;
    any = true;
    at = end;
    // One bracket too many is a frequent error.
    skip(text, end, " \t\r\n,;}");
  }
  if (any) skip(text, at, " \t\r\n}];");
  return any;
}

FoundCalls find_objects(std::string_view text, const std::vector<Signature>& functions) {
  FoundCalls found;
  size_t at = 0;
  while (true) {
    size_t begin = at;
    bool marked = false;
    while (take_one(text, begin, kOpening)) marked = true;
    if (!marked && at > 0) break;
    if (!read_objects(text, begin, functions, found.parts)) break;
    take_one(text, begin, kClosing);
    at = begin;
  }
  found.end = at;
  return found;
}

FoundCalls find_in(const CallFormat& format, std::string_view text,
                   const std::vector<Signature>& functions) {
  FoundCalls found;
  CallReader reader(format, functions);
  std::vector<MessagePart> parts;
  reader.read(text, true, parts);
  if (reader.calls() == 0) return found;
  for (MessagePart& part : parts) {
    if (part.call_index >= reader.calls()) break;
    if (part.begins)
      found.parts.push_back(std::move(part));
    else
      found.parts.back().text += part.text;
  }
  found.end = reader.end();
  return found;
}

}  // namespace

FoundCalls find_calls(std::string_view text, const std::vector<Signature>& functions) {
  FoundCalls objects = find_objects(text, functions);
  if (!objects.parts.empty()) return objects;
  for (const CallFormat& format : call_formats()) {
    if (format.in_object()) continue;
    FoundCalls found = find_in(format, text, functions);
    if (!found.parts.empty()) return found;
  }
  return {};
}

const std::vector<std::string>& call_marks() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> marks;
    for (const CallFormat& format : call_formats()) {
      const std::string_view mark = format.trigger;
      if (mark.size() > kOrdinary && !std::ranges::count(marks, mark)) marks.emplace_back(mark);
    }
    return marks;
  }();
  return all;
}

bool may_begin_calls(std::string_view text, const std::vector<Signature>& functions) {
  text.remove_prefix(after_space(text, 0));
  if (text.empty()) return true;
  for (const std::string_view fence : {"```json", "```tool_call", "```"}) {
    if (fence.starts_with(text)) return true;
    if (!text.starts_with(fence)) continue;
    text.remove_prefix(fence.size());
    text.remove_prefix(after_space(text, 0));
    if (text.empty()) return true;
    break;
  }
  const bool list = text[0] == '[';
  if (list) {
    text.remove_prefix(1);
    text.remove_prefix(after_space(text, 0));
    if (text.empty()) return true;
    for (const Signature& function : functions) {
      const std::string call = function.name + "(";
      if (text.starts_with(call) || std::string_view(call).starts_with(text)) return true;
    }
  }
  if (text[0] != '{') return false;
  text.remove_prefix(1);
  text.remove_prefix(after_space(text, 0));
  if (text.empty()) return true;
  if (text[0] != '"' && text[0] != '\'') return false;
  text.remove_prefix(1);
  const std::string_view key = text.substr(0, text.find_first_of("\"'"));
  const bool ended = key.size() < text.size();
  for (const std::string_view known :
       {"name", "tool_name", "tool_call_id", "arguments", "parameters", "type", "id", "function"})
    if (ended ? key == known : known.starts_with(key)) return true;
  return false;
}

}  // namespace fovea::text
