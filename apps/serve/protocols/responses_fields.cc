// The fields of requests in the format of OpenAI's Responses API.

#include "serve/request/described_field.h"
#include "serve/request/field_values.h"
#include "serve/request/foreign_fields.h"

namespace fovea::serve {
namespace {

using Responses = ResponsesRequest;

constexpr double kMostOutputTokens = 2147483647;

void put_reasoning(const Json& value, Responses& request) {
  request.reasoning = value;
  if (const Json effort = value.value("effort", Json()); !effort.is_null()) {
    if (!effort.is_string()) refuse_value("reasoning.effort", "a word");
    request.effort = effort;
  }
  for (const char* key : {"summary", "generate_summary"}) {
    const Json summary = value.value(key, Json());
    if (summary.is_null()) continue;
    if (summary != "auto" && summary != "concise" && summary != "detailed")
      refuse_value("reasoning.summary", "auto, concise or detailed");
    request.summary = true;
  }
}

void put_text(const Json& value, Responses& request) {
  const Json format = value.value("format", Json());
  if (format.is_null()) return;
  const Json type = format.is_object() ? format.value("type", Json()) : Json();
  request.text_format = format;
  if (type == "text") return;
  if (type == "json_object") {
    request.guides.push_back({Guide::Kind::json_object, "text.format"});
    return;
  }
  if (type != "json_schema" || !format.value("schema", Json()).is_object())
    refuse_value("text.format", "type text, json_object, or json_schema with a schema");
  request.guides.push_back({Guide::Kind::schema, "text.format", format["schema"].dump()});
}

void put_include(const Json& value, Responses& request) {
  for (const Json& each : value) {
    if (each == "reasoning.encrypted_content")
      request.encrypted = true;
    else if (each == "message.output_text.logprobs")
      request.logprobs = true;
    else if (!each.is_string())
      refuse_value("include", "names");
  }
}

void put_responses_choice(const Json& value, Responses& request) {
  const Json type = value.is_object() ? value.value("type", Json()) : Json();
  request.given_choice = value;
  if (value == "none" || value == "auto" || value == "required") {
    request.tool_choice = value;
  } else if (type == "allowed_tools") {
    request.tool_choice = value.value("mode", Json("auto"));
    request.allowed_tools = value.value("tools", Json::array());
  } else if (type == "function" || type == "custom") {
    request.tool_choice = {{"type", "function"},
                           {"function", {{"name", value.value("name", Json())}}}};
  } else if (type.is_string()) {
    throw ApiError{400, "tool_choice: the server does not run this tool; expected another one",
                   "tool_choice", "invalid_value"};
  } else {
    refuse_value("tool_choice", "none, auto, required, or type function or custom with a name");
  }
}

// Stored responses would have to outlive the server.
void put_store(const Json& value, Responses&) {
  if (value == true)
    refuse_value("store", "false: the server stores nothing; send the whole conversation");
}

void put_truncation(const Json& value, Responses&) {
  if (value != "disabled") refuse_value("truncation", "disabled: messages are never dropped");
}

// The fields that the server refuses, and those that change nothing.
Fields<Responses> left_out_fields() {
  return {
      refused_field<Responses>("previous_response_id", "a stored response",
                               "send the whole conversation, since nothing is stored"),
      refused_field<Responses>("conversation", "a stored conversation",
                               "send the whole conversation, since nothing is stored"),
      refused_field<Responses>("background", "a response that is fetched later", "use stream"),
      refused_field<Responses>("prompt", "a stored prompt", "send the messages in input"),
      refused_field<Responses>("max_tool_calls", "a limit of calls of built-in tools",
                               "use parallel_tool_calls"),
      {{"prompt_cache_key", FieldType::any, 0, 0, "none",
        "requests with the same key go to the same one of several servers; see docs/deploy.md"},
       [](const Json&, Responses&) {}},
      {{"client_metadata", FieldType::any, 0, 0, "none", "about the client; changes nothing"},
       [](const Json&, Responses&) {}},
      {{"stream_options", FieldType::any, 0, 0, "none", "changes nothing"},
       [](const Json&, Responses&) {}},
      {{"user", FieldType::any, 0, 0, "none", "about the user; changes nothing"},
       [](const Json&, Responses&) {}},
      {{"safety_identifier", FieldType::any, 0, 0, "none", "about the user; changes nothing"},
       [](const Json&, Responses&) {}},
      {{"service_tier", FieldType::any, 0, 0, "none", "changes nothing"},
       [](const Json&, Responses&) {}},
  };
}

Fields<Responses> responses_fields() {
  Fields<Responses> all = joined<Responses>(
      {model_field(),
       {{"input", FieldType::any, 0, 0, "", "the conversation: a text or a list of items", true},
        [](const Json& v, Responses& r) { r.input = v; }},
       {{"instructions", FieldType::text, 0, kMostText, "none", "the system prompt"},
        [](const Json& v, Responses& r) { r.instructions = v; }},
       {{"max_output_tokens", FieldType::integer, 1, kMostOutputTokens, "model",
         "the maximum number of generated tokens, reasoning included"},
        [](const Json& v, Responses& r) {
          r.options.max_tokens = v;
          r.max_tokens_given = true;
        }}},
      Fields<GenerationRequest>{
          bounded(0, 2,
                  described("temperature", &GenerationRequest::options, "temperature", "model")),
          {{"top_p", FieldType::number, 0, 1, "model", "keep the most likely tokens of this share"},
           [](const Json& v, GenerationRequest& r) {
             r.options.sampling.top_p = std::max(1e-6f, v.get<float>());
           }},
          {{"stream", FieldType::boolean, 0, 0, "false", "stream the response as it is generated"},
           [](const Json& v, GenerationRequest& r) { r.stream = v; }}},
      {
          {{"tools", FieldType::array, 0, 512, "none",
            "functions and custom tools, also in namespaces; tools that run on OpenAI's servers "
            "are left out and named in the header fovea-left-out"},
           [](const Json& v, Responses& r) { r.given_tools = v; }},
          {{"tool_choice", FieldType::any, 0, 0, "auto",
            "none, auto, required, {\"type\": ..., \"name\": ...} of a tool, or allowed_tools"},
           put_responses_choice},
          {{"parallel_tool_calls", FieldType::boolean, 0, 0, "true",
            "a response may have several calls"},
           [](const Json& v, Responses& r) { r.parallel_calls = v; }},
          {{"reasoning", FieldType::object, 0, 16, "none",
            "effort (none, minimal, low, medium, high, xhigh) and summary: with it, the reasoning "
            "is returned as a summary"},
           put_reasoning},
          {{"text", FieldType::object, 0, 16, "none", "format: text, json_object or json_schema"},
           put_text},
          {{"include", FieldType::array, 0, 64, "none",
            "reasoning.encrypted_content returns the reasoning in a form that can be sent back; "
            "message.output_text.logprobs returns the log-probability of each token of the text"},
           put_include},
          {{"top_logprobs", FieldType::integer, 0, 20, "0",
            "return the log-probabilities, with this many most likely alternatives per token"},
           [](const Json& v, Responses& r) {
             r.options.logprobs = v;
             r.logprobs |= v > 0;
           }},
          {{"store", FieldType::boolean, 0, 0, "false", "only false: nothing is stored"},
           put_store},
          {{"truncation", FieldType::text, 0, 16, "disabled", "only disabled"}, put_truncation},
          {{"metadata", FieldType::any, 0, 0, "none", "returned as it is"},
           [](const Json& v, Responses& r) { r.metadata = v; }},
      });
  for (const Field<Responses>& field : left_out_fields()) all.push_back(field);
  return all;
}

}  // namespace

template <>
const Fields<Responses>& fields_of() {
  static const Fields<Responses> all = responses_fields();
  return all;
}

}  // namespace fovea::serve
