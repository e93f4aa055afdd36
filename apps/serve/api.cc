#include "serve/api.h"
#include "base/ordered_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "fovea/core/excerpt.h"
#include "fovea/core/machine.h"
#include "serve/anthropic.h"
#include "serve/classification.h"
#include "serve/fields.h"
#include "serve/generation.h"
#include "serve/handlers.h"
#include "serve/info.h"
#include "serve/llama_routes.h"
#include "serve/ollama_models.h"
#include "serve/ollama_routes.h"
#include "serve/openai_format.h"
#include "serve/page.h"
#include "serve/prompts.h"
#include "serve/reasoning.h"
#include "serve/response_json.h"
#include "serve/response_limits.h"
#include "serve/responses.h"
#include "serve/translation.h"
#include "serve/unknown_fields.h"
#include "serve/vectors.h"

namespace fovea::serve {
namespace {

// The page may load only files of this server, and no other page may embed it in a frame.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
           {{"n_ctx_train", facts.context},
            {"n_embd", facts.width},
            {"n_layer", facts.layers},
            {"n_head", facts.heads},
            {"n_params", facts.parameters},
            {"n_vocab", facts.vocabulary}}}};
}

bool any(const ServedModel&) { return true; }
bool reranks(const ServedModel& model) {
  return is<ServedReranker>(model) || is<ServedMultiVectorEmbedder>(model);
}
bool reads_images(const ServedModel& model) {
  const auto* const generator = model.find<TextGenerator>();
  return generator != nullptr && generator->image_prompt;
}
bool labels(const ServedModel& model) { return model.find_classifier() != nullptr; }
bool scores(const ServedModel& model) { return reranks(model) || is<ServedEmbedder>(model); }
bool reads_text(const ServedModel& model) { return model.tokenizer.has_value(); }

// Sets the options of a request to the model's, and max_tokens to `tokens` unless the model has it.
auto generation_defaults(int64_t tokens) {
  return [tokens](GenerationRequest& request, ServedModel& model) {
    apply_defaults(request, model, tokens);
  };
}

void check_has_text(const Json& body) {
  const auto given = [&](const char* key) { return body.contains(key) && !body[key].is_null(); };
  if (!given("content") && !given("prompt"))
    throw ApiError{400, "content: is missing; expected content, prompt or inputs", "content",
                   "missing_required_parameter"};
}

std::string type_of(const std::string& name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  return name.ends_with(".css") ? "text/css; charset=utf-8" : "text/html; charset=utf-8";
}

// Clients of Ollama ask for "/" to find whether the server runs, and accept JSON only.
bool accepts_html(std::string_view accept) {
  if (accept.empty()) return true;
  for (const char* type : {"text/html", "text/*", "*/*"})
    if (accept.find(type) != accept.npos) return true;
  return false;
}

// Adds the routes of the page: "/", "/chat.js" and "/chat.css". They need no key, since they are
// the same for everybody; the page asks for the key.
void add_page(http::Router& router) {
  for (const auto& [name, bytes] : page_files()) {
    const http::Handler handler = [name, bytes](const http::Request& request,
                                                const std::shared_ptr<http::Exchange>& exchange) {
      if (name == "index.html" && !accepts_html(request.header("accept")))
        return exchange->send({200, "text/plain; charset=utf-8", {}, "Ollama is running"});
      http::Response response{200, type_of(name), {}, std::string(bytes)};
      response.headers = {{"Content-Security-Policy", kPolicy},
                          {"X-Content-Type-Options", "nosniff"},
                          {"Referrer-Policy", "no-referrer"},
                          {"Cache-Control", "no-cache"}};
      exchange->send(std::move(response));
    };
    router.add({"GET", name == "index.html" ? "/" : "/" + name, false, handler, true});
  }
}

}  // namespace

Api::Api(Models models) : models_(std::move(models)) {}

void Api::add(std::shared_ptr<ServedModel> model) {
  const std::lock_guard lock(mutex_);
  models_.push_back(std::move(model));
}

std::shared_ptr<ServedModel> Api::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(models_.begin(), models_.end(),
                                  [&](const auto& model) { return model->facts.name == name; });
  if (found == models_.end()) throw unknown_model(name);
  if (models_.size() == 1)
    throw ApiError{409, "model: \"" + name + "\" is the only model; expected another one beside it",
                   "model", "model_in_use"};
  std::shared_ptr<ServedModel> model = std::move(*found);
  models_.erase(found);
  return model;
}

void Api::drop(const std::string& name) {
  std::shared_ptr<ServedModel> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(models_.begin(), models_.end(),
                                  [&](const auto& model) { return model->facts.name == name; });
  if (found == models_.end() || models_.size() == 1) return;
  dropped = std::move(*found);
  models_.erase(found);
}

Api::Models Api::models() const {
  const std::lock_guard lock(mutex_);
  return models_;
}

std::shared_ptr<ServedModel> Api::model(const Json& body, Able able) const {
  const Models models = this->models();
  const auto name = body.find("model");
  if (name == body.end() || !name->is_string() || name->get_ref<const std::string&>().empty()) {
    for (const auto& model : models) {
      if (able(*model)) return model;
    }
    return models.front();
  }
  for (const auto& model : models) {
    if (model->facts.name == name->get_ref<const std::string&>()) return model;
  }
  if (options_.any_model && models.size() == 1) return models.front();
  throw unknown_model(name->get_ref<const std::string&>());
}

void Api::list_models(const http::Request&, const ExchangePtr& exchange) {
  Json data = Json::array();
  for (const auto& model : models()) data.push_back(model_json(*model));
  // Codex expects a list of models with its own prompts for each; it has such prompts itself.
  exchange->send(json_response({{"object", "list"}, {"data", data}, {"models", Json::array()}}));
}

void Api::one_model(const http::Request& request, const ExchangePtr& exchange) {
  exchange->send(json_response(model_json(*model({{"model", request.rest}}, any))));
}

void Api::check_unknown_fields(const Json& body, const char* path) const {
  constexpr size_t kMostName = 64;
  const std::vector<FieldInfo>& fields = fields_of_route(path);
  check_unknown(body, fields);
  for (const std::string& key : unknown_keys(body, fields))
    warn_once(
        fmt::format("{}: the field \"{}\" is unknown and ignored", path, excerpt(key, kMostName)));
}

void Api::warn_once(const std::string& line) const {
  constexpr size_t kMostWarnings = 1000;
  {
    const std::lock_guard lock(mutex_);
    if (!warn_ || warned_.size() == kMostWarnings || !warned_.insert(line).second) return;
  }
  warn_(line);
}

void Api::complete(const http::Request& request, const ExchangePtr& exchange) {
  constexpr int64_t kTokens = 16;  // OpenAI's default
  auto [model, parsed] =
      read<CompletionRequest>(request, is<TextGenerator>, generation_defaults(kTokens));
  const PreparedPrompts prompts = prepare(parsed, *model, *exchange);
  auto format = openai_completion(parsed, model->facts.name, echoed_prompts(parsed, *model));
  std::make_shared<GenerationJob>(std::move(parsed), std::move(format), model, exchange, metrics_)
      ->start(prompts);
}

void Api::chat(const http::Request& request, const ExchangePtr& exchange) {
  constexpr int64_t kTokens = -1;  // as many as the context has room for
  auto [model, parsed] =
      read<ChatRequest>(request, is<TextGenerator>, generation_defaults(kTokens));
  const Json effort = parsed.template_variables.value("reasoning_effort", Json());
  if (effort.is_string() && is_effort(effort))
    set_effort(effort, "reasoning_effort", *model, parsed);
  const PreparedPrompts prompts = prepare(parsed, *model);
  for (const std::string& warning : parsed.warnings) warn_once(warning);
  auto format = openai_chat(parsed, model->facts.name);
  std::make_shared<GenerationJob>(std::move(parsed), std::move(format), model, exchange, metrics_)
      ->start(prompts);
}

void Api::openai_embeddings(const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = read<OpenAIEmbedRequest>(request, is<ServedEmbedder>);
  serve_openai_embeddings(parsed, model, exchange);
}

void Api::embed(const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = read<EmbedRequest>(
      request, is<ServedEmbedder>,
      [](EmbedRequest& defaults, const ServedModel&) { defaults.options.normalise = true; });
  serve_embed(parsed, model, exchange);
}

void Api::embed_sparse(const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = read<SparseEmbedRequest>(request, is<ServedSparseEmbedder>);
  serve_embed_sparse(parsed, model, exchange);
}

void Api::embed_all(const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = read<TokenEmbedRequest>(request, is<ServedMultiVectorEmbedder>);
  serve_embed_all(parsed, model, exchange);
}

void Api::rerank(const http::Request& request, const ExchangePtr& exchange) {
  // text-embeddings-inference has texts; vLLM has documents, as in the other two routes.
  const Json body = parse_body(request.body);
  if (!body.contains("texts") && body.contains("documents")) return ranks(request, exchange);
  const auto [model, parsed] = read<RerankRequest>(request, reranks);
  serve_rerank(parsed, model, exchange);
}

void Api::classify(const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = read<ClassifyRequest>(request, labels);
  serve_classify(parsed, model, exchange);
}

void Api::predict(const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = read<PredictRequest>(request, labels);
  serve_predict(parsed, model, exchange);
}

void Api::score(const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = read<ScoreRequest>(request, scores);
  serve_score(parsed, model, exchange);
}

void Api::ranks(const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = read<RankRequest>(request, scores);
  serve_ranks(parsed, model, exchange);
}

void Api::similarity(const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = read<SimilarityRequest>(request, is<ServedEmbedder>);
  serve_similarity(parsed, model, exchange);
}

void Api::info(const http::Request&, const ExchangePtr& exchange) {
  exchange->send(json_response(info_json(*models().front())));
}

void Api::translate(const http::Request& request, const ExchangePtr& exchange) {
  const std::string_view type = request.header("content-type");
  const bool form = type.substr(0, type.find(';')) == "application/x-www-form-urlencoded" &&
                    request.body.substr(0, 1) != "{";  // curl -d declares JSON as a form
  TranslateRequest parsed;
  read_fields(parse_body(form ? json_of_form(request.body) : request.body), 0, parsed);
  serve_translation(parsed, models(), exchange);
}

void Api::languages(const http::Request&, const ExchangePtr& exchange) {
  exchange->send(json_response(languages_json(models())));
}

void Api::tokenize(const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = read<TokenizeRequest>(request, reads_text);
  const text::Tokenizer& tokenizer = model->needs_tokenizer();
  if (!parsed.inputs.empty())
    return exchange->send({200, "application/json", {}, token_lists(parsed, tokenizer)});
  if (parsed.text.empty()) check_has_text(parse_body(request.body));
  text::EncodingOptions options;
  options.add_special_tokens = parsed.add_special;
  options.truncate_and_pad = false;
  options.special = parsed.special;
  const std::vector<int32_t> ids = parsed.add_special
                                       ? tokenizer.encoding(parsed.text, options).ids
                                       : tokenizer.encode(parsed.text, options.special);
  // The body is written without a tree of JSON values, since a text may have a million tokens.
  std::string body = "{\"tokens\":[";
  for (const int32_t id : ids) {
    if (body.back() != '[') body += ',';
    if (parsed.with_pieces) {
      body += fmt::format("{{\"id\":{},\"piece\":{}}}", id, json_line(tokenizer.bytes_of(id)));
    } else {
      body += std::to_string(id);
    }
    check_response_bytes(std::ssize(body), "content", "with a shorter text");
  }
  body += fmt::format("],\"count\":{},\"max_model_len\":{}}}\n", ids.size(), model->facts.context);
  exchange->send({200, "application/json", {}, std::move(body)});
}

void Api::detokenize(const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = read<DetokenizeRequest>(request, reads_text);
  const text::Tokenizer& tokenizer = model->needs_tokenizer();
  int64_t bytes = 0;
  for (const int32_t id : parsed.ids) bytes += std::ssize(tokenizer.text_of(id));
  check_response_bytes(2 * bytes, "tokens", "with fewer tokens");
  const std::string text = tokenizer.decode(parsed.ids, parsed.skip_special);
  exchange->send(
      json_response({{"content", text}, {"prompt", text}}));  // llama.cpp's and vLLM's name
}

void Api::decode(const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = read<DecodeRequest>(request, reads_text);
  exchange->send(json_response(decoded_texts(parsed, model->needs_tokenizer())));
}

// As text-embeddings-inference does: what the model is for.
void Api::vectors_or_labels(const http::Request& request, const ExchangePtr& exchange) {
  const auto model = this->model(parse_body(request.body), [](const ServedModel& served) {
    return is<ServedSparseEmbedder>(served) || scores(served) || labels(served);
  });
  if (is<ServedSparseEmbedder>(*model)) return embed_sparse(request, exchange);
  if (reranks(*model)) return rerank(request, exchange);
  return labels(*model) ? predict(request, exchange) : embed(request, exchange);
}

http::Router Api::router(size_t most_chat) {
  http::Router router;
  if (!std::ranges::any_of(models(), [](const auto& model) { return reads_images(*model); }))
    most_chat = 0;  // as every other request
  const auto route_of = [&](const char* method, const char* path, RouteFunction function,
                            ErrorShape shape = ErrorShape::openai) {
    return guarded_route(
        method, path,
        [this, function](const http::Request& request, const ExchangePtr& exchange) {
          (this->*function)(request, exchange);
        },
        shape);
  };
  const auto add = [&](const auto&... arguments) { router.add(route_of(arguments...)); };
  add_health_routes(router, readiness_);
  const http::Handler program = [](const http::Request&, const ExchangePtr& exchange) {
    exchange->send(json_response({{"version", version()}}));
  };
  router.add({"GET", "/version", true, program, true});
  const http::Handler metrics = [this](const http::Request&, const ExchangePtr& exchange) {
    exchange->send({200, "text/plain; version=0.0.4; charset=utf-8", {}, metrics_.text(models())});
  };
  router.add({"GET", "/metrics", true, metrics, true});
  add_page(router);
  add("GET", "/v1/models", &Api::list_models);
  if (options_.lists_models) add("GET", "/models", &Api::list_models);
  add("GET", "/v1/models/{id}", &Api::one_model);
  for (const char* path : {"/v1/completions", "/completions"}) add("POST", path, &Api::complete);
  http::Route chats = route_of("POST", "/v1/chat/completions", &Api::chat);
  chats.most_body = most_chat;
  router.add(chats);
  chats.path = "/chat/completions";
  router.add(std::move(chats));
  add("POST", "/v1/embeddings", &Api::openai_embeddings);
  add("POST", "/embed", &Api::embed, ErrorShape::embeddings);
  add("POST", "/embed_sparse", &Api::embed_sparse, ErrorShape::embeddings);
  add("POST", "/embed_all", &Api::embed_all, ErrorShape::embeddings);
  add("POST", "/rerank", &Api::rerank, ErrorShape::embeddings);
  for (const char* path : {"/classify", "/v1/classify"}) add("POST", path, &Api::classify);
  add("POST", "/predict", &Api::predict, ErrorShape::embeddings);
  for (const char* path : {"/score", "/v1/score"}) add("POST", path, &Api::score);
  for (const char* path : {"/v1/rerank", "/v2/rerank", "/reranking", "/v1/reranking"})
    add("POST", path, &Api::ranks);
  add("POST", "/similarity", &Api::similarity, ErrorShape::embeddings);
  add("GET", "/info", &Api::info);
  add("POST", "/translate", &Api::translate, ErrorShape::translate);
  add("GET", "/languages", &Api::languages, ErrorShape::translate);
  add("POST", "/tokenize", &Api::tokenize);
  add("POST", "/detokenize", &Api::detokenize);
  add("POST", "/decode", &Api::decode, ErrorShape::embeddings);
  add("POST", "/", &Api::vectors_or_labels, ErrorShape::embeddings);
  add_llama_routes(router, *this);
  add_responses_route(router, *this, most_chat);
  add_anthropic_routes(router, *this, most_chat);
  add_ollama_routes(router, *this, most_chat);
  add_ollama_model_routes(router, *this);
  return router;
}

}  // namespace fovea::serve
