#include "serve/protocols/anthropic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "serve/generation/generation.h"
#include "serve/generation/prompts.h"
#include "serve/generation/reasoning.h"
#include "serve/generation/tool_calls.h"
#include "serve/routes/handlers.h"

namespace fovea::serve {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

// Completes a request: messages and tools in OpenAI's form, and the switches of reasoning.
void complete_request(AnthropicRequest& request, const ServedModel& model) {
  request.max_tokens_given = true;
  if (!is_neutral(request.system)) request.messages_field = "messages and system";
  request.messages = messages_of_anthropic(request.system, request.given_messages);
  if (request.messages.empty())
    throw ApiError{400, "messages: expected at least one message", "messages", "invalid_value"};
  std::vector<std::string> left_out;
  request.tools = tools_of_anthropic(request.given_tools, left_out);
  if (!left_out.empty()) name_left_out_tools(left_out, request);
  if (request.thinking) switch_reasoning(*request.thinking, model, request);
  if (!request.effort.empty()) set_effort(request.effort, "output_config.effort", model, request);
}

template <class Request>
Api::Read<Request> read_request(Api& api, const http::Request& request) {
  auto read = api.read<Request>(
      request, is<TextGenerator>,
      [](AnthropicRequest& defaults, ServedModel& model) { apply_defaults(defaults, model, -1); });
  complete_request(read.request, *read.model);
  return read;
}

void answer_messages(Api& api, const http::Request& http_request, const ExchangePtr& exchange) {
  auto [model, request] = read_request<AnthropicRequest>(api, http_request);
  const PreparedPrompts prompts = prepare(request, *model);
  for (const std::string& warning : request.warnings)
    api.warn_once(fmt::format("{}: {}", AnthropicRequest::kPath, warning));
  auto format = anthropic_format(request, model->facts.name, std::ssize(prompts.ids[0]));
  std::make_shared<GenerationJob>(std::move(request), std::move(format), model, exchange,
                                  api.metrics())
      ->start(prompts);
}

void answer_count(Api& api, const http::Request& http_request, const ExchangePtr& exchange) {
  auto [model, request] = read_request<AnthropicCountRequest>(api, http_request);
  exchange->send(json_response({{"input_tokens", std::ssize(prompt_of(request, *model))}}));
}

}  // namespace

void add_anthropic_routes(http::Router& router, Api& api, size_t most_chat) {
  const auto add = [&](const char* path, Answer answer) {
    router.add(api_route(api, "POST", path, answer, ErrorShape::anthropic, most_chat));
  };
  add(AnthropicRequest::kPath, answer_messages);
  add(AnthropicCountRequest::kPath, answer_count);
}

}  // namespace fovea::serve
