#include "serve/protocols/responses.h"

#include <fmt/format.h>

#include <algorithm>

#include "serve/generation/generation.h"
#include "serve/generation/prompts.h"
#include "serve/generation/reasoning.h"
#include "serve/generation/tool_calls.h"
#include "serve/routes/handlers.h"

namespace fovea::serve {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

// Keeps the functions that tool_choice names as allowed.
void keep_allowed(ResponsesRequest& request) {
  if (request.allowed_tools.is_null()) return;
  Json kept = Json::array();
  for (const Json& tool : request.tools)
    for (const Json& allowed : request.allowed_tools)
      if (allowed.is_object() && allowed.value("name", Json()) == tool["function"]["name"])
        kept.push_back(tool);
  request.tools = std::move(kept);
}

// Completes a request: messages and tools of a chat, and the amount of reasoning.
void complete_response(ResponsesRequest& request, const ServedModel& model) {
  request.messages_field = is_neutral(request.instructions) ? "input" : "input and instructions";
  request.messages = messages_of_items(request.instructions, request.input, request.warnings);
  std::vector<std::string> left_out;
  request.tools = tools_of_responses(request.given_tools, left_out, request);
  if (!left_out.empty()) name_left_out_tools(left_out, request);
  keep_allowed(request);
  if (request.stream) request.logprob_copies = 5;  // of the token, text, part, item and response
  if (!request.effort.empty()) set_effort(request.effort, "reasoning.effort", model, request);
}

void answer_response(Api& api, const http::Request& http_request, const ExchangePtr& exchange) {
  auto [model, request] = api.read<ResponsesRequest>(
      http_request, is<TextGenerator>, [](ResponsesRequest& defaults, ServedModel& served) {
        apply_defaults(defaults, served, -1);
      });
  complete_response(request, *model);
  auto format = responses_format(request, model->facts.name);
  const PreparedPrompts prompts = prepare(request, *model);
  for (const std::string& warning : request.warnings)
    api.warn_once(fmt::format("{}: {}", ResponsesRequest::kPath, warning));
  std::make_shared<GenerationJob>(std::move(request), std::move(format), model, exchange,
                                  api.metrics())
      ->start(prompts);
}

}  // namespace

void add_responses_route(http::Router& router, Api& api, size_t most_chat) {
  router.add(api_route(api, "POST", ResponsesRequest::kPath, answer_response, ErrorShape::openai,
                       most_chat));
}

}  // namespace fovea::serve
