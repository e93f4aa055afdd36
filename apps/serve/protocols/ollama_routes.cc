#include "serve/protocols/ollama_routes.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <numeric>

#include "fovea/core/excerpt.h"
#include "serve/generation/generation.h"
#include "serve/generation/prompts.h"
#include "serve/generation/reasoning.h"
#include "serve/protocols/ollama_format.h"
#include "serve/protocols/ollama_messages.h"
#include "serve/protocols/vectors.h"
#include "serve/request/unknown_fields.h"
#include "serve/routes/handlers.h"

namespace fovea::serve {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

// Refuses options that look like misspelt ones, and names the other unknown ones in a warning.
void check_options(const Api& api, const Json& body, const char* path) {
  constexpr std::string_view kPrefix = "options.";
  constexpr size_t kMostName = 64;
  const auto options = body.find("options");
  if (options == body.end() || !options->is_object()) return;
  std::vector<FieldInfo> fields;
  for (FieldInfo field : fields_of_route(path)) {
    if (!field.name.starts_with(kPrefix)) continue;
    field.name.erase(0, kPrefix.size());
    fields.push_back(std::move(field));
  }
  check_unknown(*options, fields);
  for (const std::string& key : unknown_keys(*options, fields))
    api.warn_once(
        fmt::format("{}: the option \"{}\" is unknown and ignored", path, excerpt(key, kMostName)));
}

// Sets the time without requests after which a model that the server loads by request is unloaded.
void keep_loaded(const Api& api, const char* path, const std::string& name, double seconds) {
  const auto idle = ModelLoader::Milliseconds(std::llround(seconds * 1e3));
  ModelLoader* const loader = api.options().loader;
  if ((loader != nullptr && loader->keep(name, idle)) || seconds < 0) return;
  api.warn_once(fmt::format("{}: keep_alive is ignored: the model stays in memory", path));
}

// What a handler needs: the model, the request, and the model's name in the response.
template <class Request>
struct OllamaRead {
  std::shared_ptr<ServedModel> model;
  Request request;
  std::string name;
};

template <class Request, class Prepare>
OllamaRead<Request> read_ollama(const Api& api, const std::string& text, Api::Able able,
                                const Prepare& prepare) {
  Json body = parse_body(text);
  const Json given = body.value("model", Json());
  if (given.is_string()) body["model"] = ollama_name(api, body);
  auto [model, request] = api.read_body<Request>(body, able, prepare);
  check_options(api, body, Request::kPath);
  for (const std::string& warning : request.warnings)
    api.warn_once(fmt::format("{}: {}", Request::kPath, warning));
  request.warnings.clear();
  if (request.keep_alive) keep_loaded(api, Request::kPath, model->facts.name, *request.keep_alive);
  const bool named = given.is_string() && !is_neutral(given);
  return {model, std::move(request), named ? given.get<std::string>() : model->facts.name};
}

template <class Request>
OllamaRead<Request> read_generation(const Api& api, const std::string& text) {
  return read_ollama<Request>(
      api, text, is<TextGenerator>, [](OllamaRequest& request, ServedModel& model) {
        constexpr int64_t kTokens = -1;  // as many as the context has room for
        apply_defaults(request, model, kTokens);
        request.stream = true;
      });
}

void check_context(const OllamaRequest& request, const ModelFacts& facts) {
  if (facts.context == 0 || request.context <= facts.context) return;
  throw ApiError{
      400, fmt::format("options.num_ctx: expected at most {}, the model's context", facts.context),
      "options.num_ctx", "out_of_range"};
}

// Sets the variables of the chat template that turn reasoning on and off.
void apply_think(OllamaRequest& request, const ServedModel& model) {
  const Json& think = request.think;
  if (think.is_null()) return;
  const auto& generator = *model.find<TextGenerator>();
  const bool reasons = generator.chat && !generator.message.reasoning_end.empty();
  if (!reasons && think != false)
    throw ApiError{400, "think: the model does not support thinking; expected false", "think",
                   "unsupported_by_template"};
  if (!reasons) return;
  switch_reasoning(think != false, model, request);
  if (think.is_string()) set_effort(think, "think", model, request);
}

void check_images(const ServedModel& model, bool given, const char* param) {
  if (!given || model.find<TextGenerator>()->image_prompt) return;
  throw ApiError{400, std::string(param) + ": the model reads no images; expected none", param,
                 "unsupported"};
}

bool has_images(const Json& messages) {
  for (const Json& message : messages)
    if (const auto content = message.find("content");
        content != message.end() && content->is_array())
      return true;
  return false;
}

// Sends the generated text of a chat or of a completion.
template <class Request>
void send_generation(Api& api, const char* path, Request request, const PreparedPrompts& prompts,
                     std::unique_ptr<GenerationFormat> format,
                     const std::shared_ptr<ServedModel>& model, const ExchangePtr& exchange) {
  for (const std::string& warning : request.warnings)
    api.warn_once(fmt::format("{}: {}", path, warning));
  std::make_shared<GenerationJob>(std::move(request), std::move(format), model, exchange,
                                  api.metrics())
      ->start(prompts);
}

void answer_chat(Api& api, const http::Request& http_request, const ExchangePtr& exchange) {
  auto [model, request, name] = read_generation<OllamaChatRequest>(api, http_request.body);
  check_context(request, model->facts);
  apply_think(request, *model);
  if (request.messages.empty())
    return exchange->send(json_response(ollama_loaded(name, true, request.keep_alive == 0)));
  check_images(*model, has_images(request.messages), "messages");
  const PreparedPrompts prompts = prepare(request, *model);
  send_generation(api, OllamaChatRequest::kPath, std::move(request), prompts, ollama_chat(name),
                  model, exchange);
}

// A prompt that is no message of a chat.
void answer_raw(Api& api, const OllamaGenerateRequest& request, const std::string& name,
                const std::shared_ptr<ServedModel>& model, const ExchangePtr& exchange) {
  const auto refuse = [](const char* param, const char* expected) {
    throw ApiError{400, fmt::format("{}: expected {}", param, expected), param, "invalid_value"};
  };
  if (!request.images.empty()) refuse("images", "none beside raw or suffix");
  if (!request.system.empty()) refuse("system", "none beside raw or suffix, or a chat template");
  if (request.think == true || request.think.is_string())
    refuse("think", "false beside raw or suffix");
  if (request.options.logprobs > 0 && !request.logprobs)
    refuse("logprobs", "true with top_logprobs");
  CompletionRequest completion;
  static_cast<GenerationRequest&>(completion) = request;
  completion.prompts = {request.prompt};
  completion.suffix = request.suffix;
  completion.special = request.raw ? text::SpecialTokens::parsed : text::SpecialTokens::as_text;
  if (!request.logprobs) completion.options.logprobs = -1;
  if (request.logprobs && completion.options.logprobs < 0) completion.options.logprobs = 0;
  const PreparedPrompts prompts = prepare(completion, *model, *exchange);
  send_generation(api, OllamaGenerateRequest::kPath, std::move(completion), prompts,
                  ollama_generate(name), model, exchange);
}

// The messages are made of these fields.
PreparedPrompts prepare_prompt(OllamaGenerateRequest& request, ServedModel& model) {
  request.messages = Json::array();
  if (!request.system.empty())
    request.messages.push_back({{"role", "system"}, {"content", request.system}});
  request.messages.push_back(message_with_images(request.prompt, request.images));
  try {
    return prepare(request, model);
  } catch (ApiError error) {
    const std::string_view kMessages = "messages";
    if (error.message.starts_with(kMessages))
      error.message.replace(0, kMessages.size(),
                            request.system.empty() ? "prompt" : "prompt and system");
    throw error;
  }
}

void answer_generate(Api& api, const http::Request& http_request, const ExchangePtr& exchange) {
  auto [model, request, name] = read_generation<OllamaGenerateRequest>(api, http_request.body);
  check_context(request, model->facts);
  if (request.prompt.empty() && request.suffix.empty() && request.images.empty())
    return exchange->send(json_response(ollama_loaded(name, false, request.keep_alive == 0)));
  if (request.raw || !request.suffix.empty() || !model->find<TextGenerator>()->chat)
    return answer_raw(api, request, name, model, exchange);
  apply_think(request, *model);
  check_images(*model, !request.images.empty(), "images");
  const PreparedPrompts prompts = prepare_prompt(request, *model);
  send_generation(api, OllamaGenerateRequest::kPath, std::move(request), prompts,
                  ollama_generate(name), model, exchange);
}

void answer_embed(Api& api, const http::Request& http_request, const ExchangePtr& exchange) {
  const auto began = std::chrono::steady_clock::now();
  const auto [model, request, name] = read_ollama<OllamaEmbedRequest>(
      api, http_request.body, is<ServedEmbedder>,
      [](VectorRequest& defaults, const ServedModel&) { defaults.options.normalise = true; });
  serve_vectors(request, false, "input", ErrorShape::translate, model, exchange,
                [began, shown = name](const infer::Embeddings& embeddings) {
                  const std::chrono::nanoseconds total = std::chrono::steady_clock::now() - began;
                  const int64_t tokens = std::accumulate(embeddings.tokens.begin(),
                                                         embeddings.tokens.end(), int64_t{0});
                  const Json object = {{"model", shown},
                                       {"total_duration", total.count()},
                                       {"load_duration", 0},
                                       {"prompt_eval_count", tokens}};
                  return json_object(object, {{"embeddings", vectors_json(embeddings)}});
                });
}

void answer_embeddings(Api& api, const http::Request& http_request, const ExchangePtr& exchange) {
  const auto [model, request, name] = read_ollama<OllamaEmbeddingsRequest>(
      api, http_request.body, is<ServedEmbedder>, [](VectorRequest&, const ServedModel&) {});
  serve_vectors(request, false, "prompt", ErrorShape::translate, model, exchange,
                [](const infer::Embeddings& vectors) {
                  std::string body = "{\"embedding\":";
                  add_vector(body, vectors.view().row<float>(0), false);
                  return body + "}";
                });
}

}  // namespace

std::string ollama_name(const Api& api, const Json& body) {
  constexpr std::string_view kLatest = ":latest";
  Json given = body.value("model", Json());
  if (given.is_null()) given = body.value("name", Json());
  if (given.is_null()) return {};
  if (!given.is_string()) throw ApiError{400, "model: expected a string", "model", "invalid_type"};
  const auto name = given.get<std::string>();
  const auto known = [&](const std::string& other) {
    return api.list().find(other) || api.is_unloaded(other);
  };
  const std::string shorter =
      name.ends_with(kLatest) ? name.substr(0, name.size() - kLatest.size()) : name;
  for (const std::string& each : {name, shorter, shorter + std::string(kLatest)})
    if (known(each)) return each;
  return name;
}

void add_ollama_routes(http::Router& router, Api& api, size_t most_chat) {
  const auto add = [&](const char* path, Answer answer, size_t most_body) {
    router.add(api_route(api, "POST", path, answer, ErrorShape::translate, most_body));
  };
  add(OllamaChatRequest::kPath, answer_chat, most_chat);
  add(OllamaGenerateRequest::kPath, answer_generate, most_chat);
  add(OllamaEmbedRequest::kPath, answer_embed, 0);
  add(OllamaEmbeddingsRequest::kPath, answer_embeddings, 0);
}

}  // namespace fovea::serve
