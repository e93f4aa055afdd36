#include "serve/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace fovea::serve {
namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
constexpr std::string_view kSpace = " \t\r\n";

std::string call_id(const CallRules& rules) {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  const std::string random = fmt::format("{:016x}", generator());
  return rules.short_ids ? short_call_id(random) : "call_" + random;
}

std::string_view without_space(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Returns the arguments, which may also be written as a text, as an object; otherwise discarded.
Json arguments_of(const Json& call) {
  auto arguments = call.find("arguments");
  if (arguments == call.end()) arguments = call.find("parameters");
  Json object(Json::value_t::discarded);
  if (arguments != call.end())
    object = arguments->is_string() ? json_or_discarded(arguments->get_ref<const std::string&>())
                                    : *arguments;
  return object.is_object() ? object : Json(Json::value_t::discarded);
}

// Appends one call. Returns false if `json` is not a call.
bool add_call(const Json& json, const CallRules& rules, Json& calls) {
  if (!json.is_object()) return false;
  const auto name = json.find("name");
  if (name == json.end() || !name->is_string()) return false;
  if (!rules.names.contains(name->get_ref<const std::string&>())) return false;
  const Json arguments = arguments_of(json);
  if (arguments.is_discarded()) return false;
  calls.push_back({{"id", call_id(rules)},
                   {"type", "function"},
                   {"function", {{"name", *name}, {"arguments", arguments.dump()}}}});
  return true;
}

bool add_calls(const Json& json, const CallRules& rules, Json& calls) {
  if (!json.is_array()) return add_call(json, rules, calls);
  return !json.empty() && std::all_of(json.begin(), json.end(), [&](const Json& each) {
    return add_call(each, rules, calls);
  });
}

// Returns whether a text may be the begin of a call in JSON, {"name": ...} or [{"name": ...}; so
// that other texts in brackets, such as [Note], are streamed.
bool may_begin_call(std::string_view text) {
  const auto skip = [&](char c) {
    text = text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
    if (text.empty()) return true;
    if (text[0] != c) return false;
    text.remove_prefix(1);
    return true;
  };
  skip('[');
  if (!skip('{') || !skip('"')) return false;
  const std::string_view key = text.substr(0, text.find('"'));
  const bool ended = key.size() < text.size();
  for (const std::string_view known : {"name", "arguments", "parameters", "type", "id"})
    if (ended ? key == known : known.starts_with(key)) return true;
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

CallRules call_rules(const Json& tools, bool short_ids) {
  CallRules rules{{}, short_ids};
  for (const Json& tool : tools) {
    const Json function = tool.is_object() ? tool.value("function", Json()) : Json();
    const Json name = function.is_object() ? function.value("name", Json()) : Json();
    if (name.is_string()) rules.names.insert(name.get<std::string>());
  }
  return rules;
}

std::string short_call_id(std::string_view text) {
  constexpr std::string_view kDigits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  uint64_t hash = 14695981039346656037ULL;  // FNV-1a: the same on every machine
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211ULL;
  std::string id(9, '0');
  for (char& digit : id) {
    digit = kDigits[hash % kDigits.size()];
    hash /= kDigits.size();
  }
  return id;
}

ToolCalls find_tool_calls(const std::string& answer, const CallRules& rules) {
  const ToolCalls none = {answer};
  ToolCalls found;
  const std::string_view whole = without_space(answer);
  if (may_begin_call(whole))
    return add_calls(json_or_discarded(whole), rules, found.calls) ? found : none;
  size_t at = answer.find(kOpen);
  if (at == std::string::npos) return none;
  found.text = without_space(std::string_view(answer).substr(0, at));
  while (at != std::string::npos) {
    const size_t begin = at + kOpen.size();
    const size_t end = std::min(answer.find(kClose, begin), answer.size());
    const std::string_view call = std::string_view(answer).substr(begin, end - begin);
    if (!add_calls(json_or_discarded(without_space(call)), rules, found.calls)) return none;
    at = answer.find(kOpen, end);
  }
  return found;
}

std::string ToolCallFilter::add(std::string_view text) {
  held_ += text;
  if (inside_) return {};
  if (!began_) {
    if (may_begin_call(held_)) return {};
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

namespace {

// Returns the schema of the arguments, which are an object: {} and null allow any object.
Json parameters_of(const Json& function) {
  Json parameters = function.value("parameters", Json::object());
  if (parameters.is_null()) parameters = Json::object();
  if (!parameters.is_object())
    throw ApiError{400, "tools: the parameters of a function are no schema; expected an object",
                   "tools", "invalid_type"};
  bool typed = false;
  for (const auto& member : parameters.items())
    typed |= member.key() == "type" || member.key() == "$ref" || member.key().ends_with("Of");
  if (!typed) parameters["type"] = "object";
  return parameters;
}

}  // namespace

std::string call_schema(const Json& tools, const std::string& name) {
  Json any = Json::array();
  for (const Json& tool : tools) {
    const Json function = tool.is_object() ? tool.value("function", Json::object()) : Json();
    if (!function.is_object() || !function.contains("name")) continue;
    if (!name.empty() && function["name"] != name) continue;
    const Json parameters = parameters_of(function);
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
