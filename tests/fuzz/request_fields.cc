// The first byte selects a route; the others are the JSON of a request, which gives options within
// their bounds or an error for the client. The same bytes are also used as the arguments of a tool
// call and as a complete answer of a model; both may contain JSON of any depth.

#include <algorithm>
#include <iterator>

#include "fuzz.h"
#include "serve/generation/tool_calls.h"
#include "serve/protocols/anthropic.h"
#include "serve/protocols/responses.h"
#include "serve/request/fields.h"
#include "serve/routes/response_limits.h"

namespace fovea::serve {
namespace {

int depth_of(const Json& json) {
  int deepest = 0;
  if (!json.is_structured()) return 0;
  for (const Json& inner : json) deepest = std::max(deepest, depth_of(inner));
  return 1 + deepest;
}

template <class Request>
void use_as(const Json& body) {
  Request request;
  read_fields(body, 100, request);
  if constexpr (std::derived_from<Request, GenerationRequest>) {
    require(request.options.sampling.temperature >= 0, "the temperature is within its bounds");
    require(bytes_of_token(request, 64, 1024) > 0, "a token takes at least one byte");
  }
  if constexpr (std::same_as<Request, DetokenizeRequest>)
    for (const int32_t id : request.ids)
      require(id >= 0 && id < 100, "a token id is in the vocabulary");
}

// The messages and tools of other protocols become those of a chat, which are valid.
void check_chat(const Json& messages, const Json& tools) {
  const FieldInfo field{"messages", FieldType::messages, 0, 1e9};
  checked_value({{"messages", messages}}, field, 0);
  functions_of(tools);
}

void use_as_items(const Json& body) {
  use_as<ResponsesRequest>(body);
  std::vector<std::string> warnings, left_out;
  ResponsesRequest request;
  const Json tools = body.value("tools", Json::array());
  check_chat(messages_of_items(body.value("instructions", Json()), body["input"], warnings),
             tools_of_responses(tools, left_out, request));
}

void use_as_blocks(const Json& body) {
  use_as<AnthropicRequest>(body);
  std::vector<std::string> left_out;
  check_chat(messages_of_anthropic(body.value("system", Json()), body["messages"]),
             tools_of_anthropic(body.value("tools", Json::array()), left_out));
}

constexpr void (*kRequests[])(const Json&) = {use_as<ChatRequest>,
                                              use_as<CompletionRequest>,
                                              use_as<TokenizeRequest>,
                                              use_as<DetokenizeRequest>,
                                              use_as<OpenAIEmbedRequest>,
                                              use_as<EmbedRequest>,
                                              use_as<SparseEmbedRequest>,
                                              use_as<TokenEmbedRequest>,
                                              use_as<RerankRequest>,
                                              use_as<ClassifyRequest>,
                                              use_as<PredictRequest>,
                                              use_as<EntitiesRequest>,
                                              use_as<AnswersRequest>,
                                              use_as<MasksRequest>,
                                              use_as<CandidatesRequest>,
                                              use_as<ScoreRequest>,
                                              use_as<RankRequest>,
                                              use_as<SimilarityRequest>,
                                              use_as<TranslateRequest>,
                                              use_as<FineTuningRequest>,
                                              use_as<BatchRequest>,
                                              use_as_items,
                                              use_as_blocks,
                                              use_as<OllamaChatRequest>,
                                              use_as<OllamaGenerateRequest>,
                                              use_as<LlamaCompletionRequest>};

void use_as_call(const std::string& text) {
  const Json json = json_or_discarded(text);
  require(json.is_discarded() || depth_of(json) <= kMostDepth,
          "JSON respects the limit of its depth");
  require(json.is_discarded() || parse_ordered_json(json.dump(), "again") == json,
          "a value is the same after writing and reading");
  // A message is the same however its text is divided.
  for (const text::CallFormat* format :
       {static_cast<const text::CallFormat*>(nullptr), text::find_call_format("hermes"),
        text::find_call_format("harmony")}) {
    text::MessageRules rules;
    rules.format = {format, "<think>", "</think>"};
    rules.functions = {{"f", ""}, {"get_weather", ""}};
    rules.enforced = format != nullptr;
    const Message whole = message_of(text, rules, true);
    Message streamed;
    ResponseIds ids;
    text::MessageReader reader(rules);
    for (const char c : text)
      for (const text::MessagePart& part : reader.add({&c, 1})) add_part(streamed, part, true, ids);
    for (const text::MessagePart& part : reader.finish()) add_part(streamed, part, true, ids);
    require(whole.content == streamed.content && whole.reasoning == streamed.reasoning,
            "a stream contains the whole text");
    require(whole.calls.size() == streamed.calls.size(), "a stream contains all calls");
    for (size_t i = 0; i < whole.calls.size(); ++i)
      require(whole.calls[i].name == streamed.calls[i].name &&
                  whole.calls[i].arguments == streamed.calls[i].arguments,
              "a stream contains the whole calls");
  }
}

}  // namespace
}  // namespace fovea::serve

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea::serve;
  if (size == 0) return 0;
  const std::string text(fovea::text_of(data + 1, size - 1));
  use_as_call(text);
  try {
    kRequests[data[0] % std::size(kRequests)](parse_body(text));
  } catch (const ApiError& error) {
    fovea::require(error.status >= 400 && error.status < 500, "the status is a client error");
    fovea::require(!error.message.empty() && error.message.find('\n') == std::string::npos,
                   "an error is one line");
    fovea::require(error.message.size() < 2000, "an error is short");
  }
  return 0;
}
