// The fields of requests in Anthropic's format.

#include "serve/request/described_field.h"
#include "serve/request/field_values.h"
#include "serve/request/foreign_fields.h"

namespace fovea::serve {
namespace {

using Messages = AnthropicRequest;

constexpr double kMostAnthropicTokens = 2147483647;

void put_anthropic_choice(const Json& value, Messages& request) {
  const Json type = value.value("type", Json());
  request.parallel_calls = value.value("disable_parallel_tool_use", Json()) != true;
  if (type == "auto" || type == "none")
    request.tool_choice = type;
  else if (type == "any")
    request.tool_choice = "required";
  else if (type == "tool" && value.value("name", Json()).is_string())
    request.tool_choice = {{"type", "function"}, {"function", {{"name", value["name"]}}}};
  else
    refuse_value("tool_choice", "type auto, any, none, or tool with a name");
}

void put_thinking(const Json& value, Messages& request) {
  const Json type = value.value("type", Json()), budget = value.value("budget_tokens", Json());
  if (type != "enabled" && type != "disabled" && type != "adaptive")
    refuse_value("thinking.type", "enabled, disabled or adaptive");
  if (!budget.is_null() && (!budget.is_number_integer() || budget.get<int64_t>() < 0))
    refuse_value("thinking.budget_tokens", "a number of tokens");
  request.thinking = type == "adaptive" ? std::nullopt : std::optional(type == "enabled");
  if (type != "disabled" && !budget.is_null()) request.reasoning_tokens = budget.get<int64_t>();
  request.shows_reasoning = type != "disabled";
}

void put_output_config(const Json& value, Messages& request) {
  if (const Json effort = value.value("effort", Json()); !effort.is_null()) {
    if (!effort.is_string()) refuse_value("output_config.effort", "a word");
    request.effort = effort;
  }
  const Json format = value.value("format", Json());
  if (is_neutral(format)) return;
  if (!format.is_object() || format.value("type", Json()) != "json_schema" ||
      !format.value("schema", Json()).is_object())
    refuse_value("output_config.format", "type json_schema with a schema");
  request.guides.push_back({Guide::Kind::schema, "output_config.format", format["schema"].dump()});
}

// The edits would remove reasoning and results of tools from earlier messages; the chat template
// decides about reasoning here.
void put_context_management(const Json& value, Messages& request) {
  const Json edits = value.value("edits", Json::array());
  for (const Json& edit : edits.is_array() ? edits : Json::array({edits})) {
    const bool keeps_all = edit.is_object() && edit.value("keep", Json()) == "all";
    if (!keeps_all)
      request.warnings.emplace_back("context_management is ignored: messages are used as they are");
  }
}

Fields<Messages> anthropic_fields(bool counts) {
  return joined<Messages>(
      {model_field(),
       {{"messages", FieldType::array, 1, 100'000, "",
         "conversation: a list of messages with role and content", true},
        [](const Json& v, Messages& r) { r.given_messages = v; }},
       {{"max_tokens", FieldType::integer, 1, kMostAnthropicTokens, counts ? "none" : "",
         "the maximum number of generated tokens, reasoning included", !counts},
        [](const Json& v, Messages& r) { r.options.max_tokens = v; }},
       {{"system", FieldType::any, 0, 0, "none", "the system prompt: a text or blocks of text"},
        [](const Json& v, Messages& r) { r.system = v; }}},
      Fields<GenerationRequest>{
          bounded(0, 2,
                  described("temperature", &GenerationRequest::options, "temperature", "model")),
          {{"top_p", FieldType::number, 0, 1, "model", "keep the most likely tokens of this share"},
           [](const Json& v, GenerationRequest& r) {
             r.options.sampling.top_p = std::max(1e-6f, v.get<float>());
           }},
          {{"top_k", FieldType::integer, 0, kMostAnthropicTokens, "model",
            "keep the most likely tokens; 0 = all"},
           [](const Json& v, GenerationRequest& r) { r.options.sampling.top_k = v; }},
          bounded(0, 16, described("stop_sequences", &GenerationRequest::options, "stop", "none"),
                  ", of at most 256 bytes each"),
          {{"stream", FieldType::boolean, 0, 0, "false", "stream the response as it is generated"},
           [](const Json& v, GenerationRequest& r) { r.stream = v; }}},
      {
          {{"tools", FieldType::array, 0, 512, "none",
            "functions that the model may call; tools that run on Anthropic's servers are left out "
            "and named in the header fovea-left-out"},
           [](const Json& v, Messages& r) { r.given_tools = v; }},
          {{"tool_choice", FieldType::object, 0, 16, "auto",
            "{\"type\": auto, any, tool (with name) or none}, disable_parallel_tool_use"},
           put_anthropic_choice},
          {{"thinking", FieldType::object, 0, 16, "disabled",
            "{\"type\": enabled, disabled or adaptive}, with budget_tokens"},
           put_thinking},
          {{"output_config", FieldType::object, 0, 16, "none",
            "effort (low, medium, high, max) and format (json_schema)"},
           put_output_config},
          {{"context_management", FieldType::object, 0, 16, "none",
            "edits of earlier messages; only those that keep all are honoured"},
           put_context_management},
          {{"metadata", FieldType::any, 0, 0, "none", "about the user; changes nothing"},
           [](const Json&, Messages&) {}},
          {{"service_tier", FieldType::any, 0, 0, "none", "changes nothing"},
           [](const Json&, Messages&) {}},
          {{"cache_control", FieldType::any, 0, 0, "none",
            "changes nothing: prefixes are kept without it"},
           [](const Json&, Messages&) {}},
          refused_field<Messages>("mcp_servers", "servers of tools", "give their tools in tools"),
          refused_field<Messages>("container", "a container of code", "the server runs no code"),
      });
}

}  // namespace

template <>
const Fields<AnthropicRequest>& fields_of() {
  static const Fields<AnthropicRequest> all = anthropic_fields(false);
  return all;
}

template <>
const Fields<AnthropicCountRequest>& fields_of() {
  static const Fields<AnthropicCountRequest> all = [] {
    Fields<AnthropicCountRequest> fields;
    for (const Field<AnthropicRequest>& field : anthropic_fields(true)) fields.emplace_back(field);
    return fields;
  }();
  return all;
}

}  // namespace fovea::serve
