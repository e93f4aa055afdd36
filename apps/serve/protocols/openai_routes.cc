#include "serve/protocols/openai_routes.h"

#include "serve/generation/custom_tools.h"
#include "serve/generation/generation.h"
#include "serve/generation/prompts.h"
#include "serve/generation/reasoning.h"
#include "serve/protocols/openai_format.h"
#include "serve/protocols/vectors.h"

namespace fovea::serve {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

Json model_json(const ServedModel& model) {
  const ModelFacts& facts = model.facts;
  const bool adapter = !facts.parent.empty();
  return {{"id", facts.name},
          {"object", "model"},
          {"created", facts.created},
          {"owned_by", "fovea"},
          {"root", adapter ? facts.parent : facts.name},
          {"parent", adapter ? Json(facts.parent) : Json()},
          {"max_model_len", facts.context},
          {"meta",
           {{"use", name_of(facts.use)},
            {"n_ctx_train", facts.context},
            {"n_embd", facts.width},
            {"n_layer", facts.layers},
            {"n_head", facts.heads},
            {"n_params", facts.parameters},
            {"n_vocab", facts.vocabulary}}}};
}

// A model that requests load by its name.
Json unloaded_json(const std::string& name) {
  return {{"id", name},          {"object", "model"}, {"created", 0},
          {"owned_by", "fovea"}, {"root", name},      {"parent", nullptr}};
}

// Sets the options of a request to the model's, and max_tokens to `tokens` unless the model has it.
auto generation_defaults(int64_t tokens) {
  return [tokens](GenerationRequest& request, ServedModel& model) {
    apply_defaults(request, model, tokens);
  };
}

void list_models(Api& api, const http::Request&, const ExchangePtr& exchange) {
  Json data = Json::array();
  for (const auto& model : api.models()) data.push_back(model_json(*model));
  for (const std::string& name : api.unloaded()) data.push_back(unloaded_json(name));
  // Codex expects a list of models with its own prompts for each; it has such prompts itself.
  exchange->send(json_response({{"object", "list"}, {"data", data}, {"models", Json::array()}}));
}

void one_model(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  if (api.is_unloaded(request.rest))
    return exchange->send(json_response(unloaded_json(request.rest)));
  const auto any = [](const ServedModel&) { return true; };
  exchange->send(json_response(model_json(*api.model({{"model", request.rest}}, any))));
}

void complete(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  constexpr int64_t kTokens = 16;  // OpenAI's default
  auto [model, parsed] =
      api.read<CompletionRequest>(request, is<TextGenerator>, generation_defaults(kTokens));
  const PreparedPrompts prompts = prepare(parsed, *model, *exchange);
  auto format = openai_completion(parsed, model->facts.name, echoed_prompts(parsed, *model));
  std::make_shared<GenerationJob>(std::move(parsed), std::move(format), model, exchange,
                                  api.metrics())
      ->start(prompts);
}

void chat(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  constexpr int64_t kTokens = -1;  // as many as the context has room for
  auto [model, parsed] =
      api.read<ChatRequest>(request, is<TextGenerator>, generation_defaults(kTokens));
  convert_custom_tools(parsed);
  const Json effort = parsed.template_variables.value("reasoning_effort", Json());
  if (effort.is_string() && is_effort(effort))
    set_effort(effort, "reasoning_effort", *model, parsed);
  const PreparedPrompts prompts = prepare(parsed, *model);
  for (const std::string& warning : parsed.warnings) api.warn_once(warning);
  auto format = openai_chat(parsed, model->facts.name);
  std::make_shared<GenerationJob>(std::move(parsed), std::move(format), model, exchange,
                                  api.metrics())
      ->start(prompts);
}

void openai_embeddings(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<OpenAIEmbedRequest>(request, is<ServedEmbedder>);
  serve_openai_embeddings(parsed, model, exchange);
}

}  // namespace

void add_openai_routes(http::Router& router, Api& api, size_t most_chat) {
  const auto add = [&](const char* method, const char* path, Answer answer, size_t most_body = 0) {
    router.add(api_route(api, method, path, answer, ErrorShape::openai, most_body));
  };
  add("GET", "/v1/models", list_models);
  if (api.options().lists_models) add("GET", "/models", list_models);
  add("GET", "/v1/models/{id}", one_model);
  for (const char* path : {"/v1/completions", "/completions"}) add("POST", path, complete);
  for (const char* path : {"/v1/chat/completions", "/chat/completions"})
    add("POST", path, chat, most_chat);
  add("POST", "/v1/embeddings", openai_embeddings);
}

}  // namespace fovea::serve
