#include "serve/api.h"
#include "base/ordered_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "fovea/core/excerpt.h"
#include "fovea/core/machine.h"
#include "serve/answer_json.h"
#include "serve/answer_limits.h"
#include "serve/classification.h"
#include "serve/fields.h"
#include "serve/generation.h"
#include "serve/handlers.h"
#include "serve/info.h"
#include "serve/page.h"
#include "serve/prompts.h"
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

// Returns the path of the requests of a kind, as in docs/serve.md.
std::string path_of(unsigned route) {
  for (const FieldsOf& each : routes_with_fields())
    if (each.of == route) return each.path;
  return "request";
}

bool any(const ServedModel&) { return true; }
bool writes(const ServedModel& model) { return model.engine.has_value(); }
bool embeds(const ServedModel& model) { return model.embedder.has_value(); }
bool embeds_sparsely(const ServedModel& model) { return model.sparse_embedder.has_value(); }
bool embeds_tokens(const ServedModel& model) { return model.multi_vector_embedder.has_value(); }
bool reranks(const ServedModel& model) { return model.rerank_queue || embeds_tokens(model); }
bool labels(const ServedModel& model) { return model.classifier.has_value(); }
bool scores(const ServedModel& model) { return reranks(model) || embeds(model); }
bool reads_text(const ServedModel& model) { return model.tokenizer.has_value(); }

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

// Adds the routes of the page: "/", "/chat.js" and "/chat.css". They need no key, since they are
// the same for everybody; the page asks for the key.
void add_page(http::Router& router) {
  for (const auto& [name, bytes] : page_files()) {
    const http::Handler handler = [name, bytes](const http::Request&,
                                                const std::shared_ptr<http::Exchange>& exchange) {
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
  throw unknown_model(name->get_ref<const std::string&>());
}

void Api::list_models(const http::Request&, const Answer& answer) {
  Json data = Json::array();
  for (const auto& model : models()) data.push_back(model_json(*model));
  answer->send(json_response({{"object", "list"}, {"data", data}}));
}

void Api::one_model(const http::Request& request, const Answer& answer) {
  answer->send(json_response(model_json(*model({{"model", request.rest}}, any))));
}

void Api::complete(const http::Request& request, const Answer& answer) {
  generate(request, answer, false);
}
void Api::chat(const http::Request& request, const Answer& answer) {
  generate(request, answer, true);
}

Api::Asked Api::read(const http::Request& request, Able able, unsigned route,
                     const Defaults& defaults) const {
  const Json body = parse_body(request.body);
  Asked asked{model(body, able), {}};
  if (defaults) asked.request = defaults(*asked.model);
  read_fields(body, route, asked.model->facts.vocabulary, asked.request);
  check_unknown(body, route);  // after a missing field is named
  warn_of_unknown(body, route);
  return asked;
}

void Api::warn_of_unknown(const Json& body, unsigned route) const {
  constexpr size_t kMostWarnings = 1000, kMostName = 64;
  for (const std::string& key : unknown_keys(body, route)) {
    const std::string line = fmt::format("{}: the field \"{}\" is unknown and ignored",
                                         path_of(route), excerpt(key, kMostName));
    {
      const std::lock_guard lock(mutex_);
      if (!warn_ || warned_.size() == kMostWarnings || !warned_.insert(line).second) continue;
    }
    warn_(line);
  }
}

void Api::generate(const http::Request& request, const Answer& answer, bool chat) {
  auto [served, asked] = read(request, writes, chat ? kChat : kCompletion, [&](ServedModel& model) {
    if (model.needs_engine().full()) throw too_busy();  // before the text is tokenised
    ApiRequest defaults;
    defaults.options = model.defaults;
    constexpr int64_t kCompletionTokens = 16;  // OpenAI's default; chats may fill the context
    defaults.options.max_tokens = model.max_tokens.value_or(chat ? -1 : kCompletionTokens);
    return defaults;
  });
  const PreparedPrompts prompts = prepare(asked, chat, *served, *answer);
  const auto job =
      std::make_shared<GenerationJob>(std::move(asked), chat, served, answer, metrics_);
  job->start(prompts);
}

void Api::openai_embeddings(const http::Request& request, const Answer& answer) {
  const auto [served, asked] = read(request, embeds, kEmbeddings);
  answer_openai_embeddings(asked, served, answer);
}

void Api::embed(const http::Request& request, const Answer& answer) {
  const auto [served, asked] = read(request, embeds, kEmbed, [](const ServedModel&) {
    ApiRequest defaults;
    defaults.embedding.normalise = true;
    return defaults;
  });
  answer_embed(asked, served, answer);
}

void Api::embed_sparse(const http::Request& request, const Answer& answer) {
  const auto [served, asked] = read(request, embeds_sparsely, kSparse);
  answer_embed_sparse(asked, served, answer);
}

void Api::embed_all(const http::Request& request, const Answer& answer) {
  const auto [served, asked] = read(request, embeds_tokens, kAllTokens);
  answer_embed_all(asked, served, answer);
}

void Api::rerank(const http::Request& request, const Answer& answer) {
  // text-embeddings-inference has texts; vLLM has documents, as in the other two routes.
  const Json body = parse_body(request.body);
  if (!body.contains("texts") && body.contains("documents")) return ranks(request, answer);
  const auto [served, asked] = read(request, reranks, kRerank);
  answer_rerank(asked, served, answer);
}

void Api::classify(const http::Request& request, const Answer& answer) {
  const auto [served, asked] = read(request, labels, kClassify);
  answer_classify(asked, served, answer);
}

void Api::predict(const http::Request& request, const Answer& answer) {
  const auto [served, asked] = read(request, labels, kPredict);
  answer_predict(asked, served, answer);
}

void Api::score(const http::Request& request, const Answer& answer) {
  const auto [served, asked] = read(request, scores, kScore);
  answer_score(asked, served, answer);
}

void Api::ranks(const http::Request& request, const Answer& answer) {
  const auto [served, asked] = read(request, scores, kRanks);
  answer_ranks(asked, served, answer);
}

void Api::similarity(const http::Request& request, const Answer& answer) {
  const auto [served, asked] = read(request, embeds, kSimilarity);
  answer_similarity(asked, served, answer);
}

void Api::info(const http::Request&, const Answer& answer) {
  answer->send(json_response(info_json(*models().front())));
}

void Api::translate(const http::Request& request, const Answer& answer) {
  const std::string_view type = request.header("content-type");
  const bool form = type.substr(0, type.find(';')) == "application/x-www-form-urlencoded" &&
                    request.body.substr(0, 1) != "{";  // curl -d declares JSON as a form
  ApiRequest asked;
  read_fields(parse_body(form ? json_of_form(request.body) : request.body), kTranslate, 0, asked);
  answer_translation(asked, models(), answer);
}

void Api::languages(const http::Request&, const Answer& answer) {
  answer->send(json_response(languages_json(models())));
}

void Api::tokenize(const http::Request& request, const Answer& answer) {
  const auto [served, asked] = read(request, reads_text, kTokenize);
  const text::Tokenizer& tokenizer = served->needs_tokenizer();
  if (!asked.text_list.empty())
    return answer->send({200, "application/json", {}, token_lists(asked, tokenizer)});
  if (asked.text.empty()) check_has_text(parse_body(request.body));
  text::EncodingOptions options;
  options.add_special_tokens = asked.add_special;
  options.truncate_and_pad = false;
  options.special = asked.special(true);
  const std::vector<int32_t> ids = asked.add_special
                                       ? tokenizer.encoding(asked.text, options).ids
                                       : tokenizer.encode(asked.text, options.special);
  // The body is written without a tree of JSON values, since a text may have a million tokens.
  std::string body = "{\"tokens\":[";
  for (const int32_t id : ids) {
    if (body.back() != '[') body += ',';
    if (asked.with_pieces) {
      body += fmt::format("{{\"id\":{},\"piece\":{}}}", id, json_line(tokenizer.bytes_of(id)));
    } else {
      body += std::to_string(id);
    }
    check_answer_bytes(std::ssize(body), "content", "with a shorter text");
  }
  body += fmt::format("],\"count\":{},\"max_model_len\":{}}}\n", ids.size(), served->facts.context);
  answer->send({200, "application/json", {}, std::move(body)});
}

void Api::detokenize(const http::Request& request, const Answer& answer) {
  const auto [served, asked] = read(request, reads_text, kDetokenize);
  const text::Tokenizer& tokenizer = served->needs_tokenizer();
  int64_t bytes = 0;
  for (const int32_t id : asked.ids) bytes += std::ssize(tokenizer.text_of(id));
  check_answer_bytes(bytes, "tokens", "with fewer tokens");
  const std::string text = tokenizer.decode(asked.ids, asked.skip_special);
  answer->send(json_response({{"content", text}}));
}

http::Router Api::router(size_t most_chat) {
  http::Router router;
  const auto route_of = [&](const char* method, const char* path, Answerer answerer,
                            ErrorShape shape = ErrorShape::openai) {
    return guarded_route(
        method, path,
        [this, answerer](const http::Request& request, const Answer& answer) {
          (this->*answerer)(request, answer);
        },
        shape);
  };
  const auto add = [&](const auto&... arguments) { router.add(route_of(arguments...)); };
  const http::Handler well = [](const http::Request&, const Answer& answer) {
    answer->send(json_response({{"status", "ok"}}));
  };
  router.add({"GET", "/health", false, well, true});
  router.add({"GET", "/v1/health", false, well, true});
  const http::Handler program = [](const http::Request&, const Answer& answer) {
    answer->send(json_response({{"version", version()}}));
  };
  router.add({"GET", "/version", true, program, true});
  const http::Handler metrics = [this](const http::Request&, const Answer& answer) {
    answer->send({200, "text/plain; version=0.0.4; charset=utf-8", {}, metrics_.text(models())});
  };
  router.add({"GET", "/metrics", true, metrics, true});
  add_page(router);
  add("GET", "/v1/models", &Api::list_models);
  add("GET", "/v1/models/{id}", &Api::one_model);
  add("POST", "/v1/completions", &Api::complete);
  http::Route chats = route_of("POST", "/v1/chat/completions", &Api::chat);
  for (const auto& model : models())
    if (model->image_prompt) chats.most_body = most_chat;
  router.add(std::move(chats));
  add("POST", "/v1/embeddings", &Api::openai_embeddings);
  add("POST", "/embed", &Api::embed, ErrorShape::embeddings);
  add("POST", "/embed_sparse", &Api::embed_sparse, ErrorShape::embeddings);
  add("POST", "/embed_all", &Api::embed_all, ErrorShape::embeddings);
  add("POST", "/rerank", &Api::rerank, ErrorShape::embeddings);
  for (const char* path : {"/classify", "/v1/classify"}) add("POST", path, &Api::classify);
  add("POST", "/predict", &Api::predict, ErrorShape::embeddings);
  for (const char* path : {"/score", "/v1/score"}) add("POST", path, &Api::score);
  for (const char* path : {"/v1/rerank", "/v2/rerank"}) add("POST", path, &Api::ranks);
  add("POST", "/similarity", &Api::similarity, ErrorShape::embeddings);
  add("GET", "/info", &Api::info);
  add("POST", "/translate", &Api::translate, ErrorShape::translate);
  add("GET", "/languages", &Api::languages, ErrorShape::translate);
  add("POST", "/tokenize", &Api::tokenize);
  add("POST", "/detokenize", &Api::detokenize);
  return router;
}

}  // namespace fovea::serve
