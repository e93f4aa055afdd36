#include "serve/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace fovea::serve {
namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
constexpr std::string_view kSpace = " \t\r\n";

// Nine letters and digits, which is what Mistral's templates demand, and others take.
std::string call_id() {
  constexpr std::string_view kSigns =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  thread_local std::mt19937_64 generator{std::random_device{}()};
  std::string id;
  for (int i = 0; i < 9; ++i) id += kSigns[generator() % kSigns.size()];
  return id;
}

std::string_view without_space(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool is_tool(const Json& tools, const std::string& name) {
  return std::any_of(tools.begin(), tools.end(), [&](const Json& tool) {
    const Json function = tool.is_object() ? tool.value("function", Json()) : Json();
    return function.is_object() && function.value("name", Json()) == name;
  });
}

// Appends one call. Returns false if `json` is not a call of one of the tools.
bool add_call(const Json& json, const Json& tools, Json& calls) {
  if (!json.is_object()) return false;
  const auto name = json.find("name");
  if (name == json.end() || !name->is_string() || !is_tool(tools, *name)) return false;
  auto arguments = json.find("arguments");
  if (arguments == json.end()) arguments = json.find("parameters");
  if (arguments == json.end()) return false;
  const std::string text =
      arguments->is_string() ? arguments->get<std::string>() : arguments->dump();
  if (!json_or_discarded(text).is_object()) return false;
  calls.push_back({{"id", call_id()},
                   {"type", "function"},
                   {"function", {{"name", *name}, {"arguments", text}}}});
  return true;
}

bool add_calls(const Json& json, const Json& tools, Json& calls) {
  if (!json.is_array()) return add_call(json, tools, calls);
  return !json.empty() && std::all_of(json.begin(), json.end(), [&](const Json& each) {
    return add_call(each, tools, calls);
  });
}

// Returns whether an answer that begins with `text` may consist of calls: of an object, or an array
// of objects. Texts begin with brackets too, such as "[Note]".
bool may_be_calls(std::string_view text) {
  for (const std::string_view begin : {std::string_view("{\""), std::string_view("[{\"")}) {
    size_t at = 0;
    for (const char sign : begin) {
      at = std::min(text.find_first_not_of(kSpace, at), text.size());
      if (at == text.size()) return true;
      if (text[at++] != sign) break;
      if (sign == '"') return true;
    }
  }
  return false;
}

}  // namespace

Json json_or_discarded(std::string_view text) {
  try {
    return parse_ordered_json(text, "call");
  } catch (const JsonFault&) {
    return Json(Json::value_t::discarded);
  }
}

ToolCalls find_tool_calls(const std::string& answer, const Json& tools) {
  const ToolCalls none = {answer};
  ToolCalls found;
  const std::string_view whole = without_space(answer);
  if (!whole.empty() && (whole[0] == '{' || whole[0] == '[')) {
    return add_calls(json_or_discarded(whole), tools, found.calls) ? found : none;
  }
  size_t at = answer.find(kOpen);
  if (at == std::string::npos) return none;
  found.text = without_space(std::string_view(answer).substr(0, at));
  while (at != std::string::npos) {
    const size_t begin = at + kOpen.size();
    const size_t end = std::min(answer.find(kClose, begin), answer.size());
    const std::string_view call = std::string_view(answer).substr(begin, end - begin);
    if (!add_calls(json_or_discarded(without_space(call)), tools, found.calls)) return none;
    at = answer.find(kOpen, end);
  }
  return found;
}

std::string ToolCallFilter::add(std::string_view text) {
  held_ += text;
  if (inside_) return {};
  if (!began_) {
    if (without_space(held_).empty() || may_be_calls(held_)) return {};
    began_ = true;
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
  constexpr const char* kKinds[] = {"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"};
  Json any = Json::array();
  for (const Json& tool : tools) {
    const Json function = tool.is_object() ? tool.value("function", Json::object()) : Json();
    if (!function.is_object() || !function.contains("name")) continue;
    if (!name.empty() && function["name"] != name) continue;
    Json parameters = function.value("parameters", Json());
    if (!parameters.is_object()) parameters = Json::object();
    const bool described = std::any_of(std::begin(kKinds), std::end(kKinds),
                                       [&](const char* key) { return parameters.contains(key); });
    if (!described) parameters["type"] = "object";
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
