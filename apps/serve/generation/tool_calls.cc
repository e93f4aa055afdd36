#include "serve/generation/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "fovea/core/excerpt.h"
#include "serve/generation/custom_tools.h"

namespace fovea::serve {
namespace {

// Returns the schema of the arguments, or "" for null, which allows any.
std::string parameters_of(const Json& function) {
  const Json parameters = function.value("parameters", Json());
  if (parameters.is_null()) return {};
  if (!parameters.is_object())
    throw ApiError{400, "tools: the parameters of a function are not a schema; expected an object",
                   "tools", "invalid_type"};
  return parameters.dump();
}

}  // namespace

std::vector<text::CallableFunction> functions_of(const Json& tools) {
  std::vector<text::CallableFunction> functions;
  for (const Json& tool : tools) {
    const Json function = tool.is_object() ? tool.value("function", Json()) : Json();
    const Json name = function.is_object() ? function.value("name", Json()) : Json();
    if (!name.is_string() || name.get_ref<const std::string&>().empty()) continue;
    functions.push_back({name, parameters_of(function), function.value("strict", Json()) == true});
  }
  return functions;
}

void name_left_out_tools(const std::vector<std::string>& types, ChatRequest& request) {
  // A header has visible ASCII only.
  std::string names;
  for (const std::string& type : types) {
    std::string name = excerpt(type, 64);
    std::erase_if(name, [](char c) { return c <= ' ' || c > '~' || c == ','; });
    if (names.size() < 512) names += (names.empty() ? "" : ", ") + name;
  }
  request.headers.emplace_back("fovea-left-out", names);
  request.warnings.push_back("tools that the server does not run are left out: " + names);
  const Json choice =
      request.tool_choice.is_object()
          ? request.tool_choice.value("function", Json::object()).value("name", Json())
          : Json();
  if (choice.is_string() && std::ranges::count(types, choice.get<std::string>()) > 0)
    throw ApiError{400, "tool_choice: the server does not run this tool; expected a function",
                   "tool_choice", "invalid_value"};
}

std::string new_call_id(bool short_id, ResponseIds& ids) {
  const std::string random = fmt::format("{:016x}", ids.next());
  return short_id ? short_call_id(random) : "call_" + random;
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

void add_part(Message& message, const text::MessagePart& part, bool short_ids, ResponseIds& ids) {
  switch (part.kind) {
    case text::MessagePart::reasoning: message.reasoning += part.text; break;
    case text::MessagePart::content: message.content += part.text; break;
    case text::MessagePart::call:
      if (part.begins) message.calls.push_back({new_call_id(short_ids, ids), part.name, ""});
      message.calls[part.call_index].arguments += part.text;
      break;
  }
}

Message message_of(const std::string& generated, const text::MessageRules& rules, bool short_ids) {
  Message message;
  ResponseIds ids;
  text::MessageReader reader(rules);
  for (const text::MessagePart& part : reader.add(generated))
    add_part(message, part, short_ids, ids);
  for (const text::MessagePart& part : reader.finish()) add_part(message, part, short_ids, ids);
  return message;
}

Json calls_json(const std::vector<Call>& calls, const std::set<std::string>& custom_tools) {
  Json all = Json::array();
  for (const Call& call : calls) {
    const bool custom = custom_tools.contains(call.name);
    const char* const type = custom ? "custom" : "function";
    Json content = {{"name", call.name}};
    content[custom ? "input" : "arguments"] =
        custom ? custom_input(call.arguments) : call.arguments;
    all.push_back({{"id", call.id}, {"type", type}, {type, std::move(content)}});
  }
  return all;
}

}  // namespace fovea::serve
