#include "serve/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace fovea::serve {
namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
constexpr std::string_view kSpace = " \t\r\n";

std::string call_id() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return fmt::format("call_{:016x}", generator());
}

std::string_view without_space(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Appends one call. Returns false if `json` is not a call.
bool add_call(const Json& json, Json& calls) {
  if (!json.is_object()) return false;
  const auto name = json.find("name");
  if (name == json.end() || !name->is_string()) return false;
  auto arguments = json.find("arguments");
  if (arguments == json.end()) arguments = json.find("parameters");
  if (arguments == json.end()) return false;
  const std::string text =
      arguments->is_string() ? arguments->get<std::string>() : arguments->dump();
  calls.push_back({{"id", call_id()},
                   {"type", "function"},
                   {"function", {{"name", *name}, {"arguments", text}}}});
  return true;
}

bool add_calls(const Json& json, Json& calls) {
  if (!json.is_array()) return add_call(json, calls);
  return !json.empty() && std::all_of(json.begin(), json.end(),
                                      [&](const Json& each) { return add_call(each, calls); });
}

}  // namespace

Json json_or_discarded(std::string_view text) {
  try {
    return parse_ordered_json(text, "call");
  } catch (const JsonFault&) {
    return Json(Json::value_t::discarded);
  }
}

ToolCalls find_tool_calls(const std::string& answer) {
  const ToolCalls none = {answer};
  ToolCalls found;
  const std::string_view whole = without_space(answer);
  if (!whole.empty() && (whole[0] == '{' || whole[0] == '[')) {
    return add_calls(json_or_discarded(whole), found.calls) ? found : none;
  }
  size_t at = answer.find(kOpen);
  if (at == std::string::npos) return none;
  found.text = without_space(std::string_view(answer).substr(0, at));
  while (at != std::string::npos) {
    const size_t begin = at + kOpen.size();
    const size_t end = std::min(answer.find(kClose, begin), answer.size());
    const std::string_view call = std::string_view(answer).substr(begin, end - begin);
    if (!add_calls(json_or_discarded(without_space(call)), found.calls)) return none;
    at = answer.find(kOpen, end);
  }
  return found;
}

std::string ToolCallFilter::add(std::string_view text) {
  held_ += text;
  if (inside_) return {};
  if (!began_) {
    const size_t first = held_.find_first_not_of(kSpace);
    if (first == std::string::npos) return {};
    began_ = true;
    inside_ = held_[first] == '{' || held_[first] == '[';
    if (inside_) return {};
  }
  size_t keep = held_.find(kOpen);
  inside_ = keep != std::string::npos;
  if (!inside_) {
    // The length of the longest suffix that may be the start of the opening tag.
    size_t tail = std::min(held_.size(), kOpen.size() - 1);
    while (held_.compare(held_.size() - tail, tail, kOpen, 0, tail) != 0) --tail;
    keep = held_.size() - tail;
  }
  std::string sure = held_.substr(0, keep);
  held_.erase(0, keep);
  return sure;
}

std::string call_schema(const Json& tools, const std::string& name) {
  Json any = Json::array();
  for (const Json& tool : tools) {
    const Json function = tool.is_object() ? tool.value("function", Json::object()) : Json();
    if (!function.is_object() || !function.contains("name")) continue;
    if (!name.empty() && function["name"] != name) continue;
    const Json parameters = function.value("parameters", Json{{"type", "object"}});
    any.push_back(
        {{"type", "object"},
         {"properties", {{"name", {{"const", function["name"]}}}, {"arguments", parameters}}},
         {"required", {"name", "arguments"}},
         {"additionalProperties", false}});
  }
  if (any.empty()) {
    throw ApiError{
        400, "tool_choice: tools has no such function; expected the name of a function in tools",
        "tool_choice", "invalid_value"};
  }
  return Json{{"anyOf", any}}.dump();
}

}  // namespace fovea::serve
