#include "serve/protocols/encoder_routes.h"

#include <fmt/format.h>

#include "base/ordered_json.h"
#include "serve/protocols/classification.h"
#include "serve/protocols/info.h"
#include "serve/protocols/tasks.h"
#include "serve/protocols/vectors.h"
#include "serve/routes/response_json.h"
#include "serve/routes/response_limits.h"

namespace fovea::serve {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

bool any(const ServedModel&) { return true; }
bool reranks(const ServedModel& model) {
  return is<ServedReranker>(model) || is<ServedMultiVectorEmbedder>(model);
}
bool labels(const ServedModel& model) { return is<ServedClassifier>(model); }
bool scores(const ServedModel& model) { return reranks(model) || is<ServedEmbedder>(model); }
bool reads_text(const ServedModel& model) { return model.tokenizer.has_value(); }

void check_has_text(const Json& body) {
  const auto given = [&](const char* key) { return body.contains(key) && !body[key].is_null(); };
  if (!given("content") && !given("prompt"))
    throw ApiError{400, "content: is missing; expected content, prompt or inputs", "content",
                   "missing_required_parameter"};
}

void embed(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<EmbedRequest>(
      request, is<ServedEmbedder>,
      [](EmbedRequest& defaults, const ServedModel&) { defaults.options.normalise = true; });
  serve_embed(parsed, model, exchange);
}

void embed_sparse(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<SparseEmbedRequest>(request, is<ServedSparseEmbedder>);
  serve_embed_sparse(parsed, model, exchange);
}

void embed_all(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<TokenEmbedRequest>(request, is<ServedMultiVectorEmbedder>);
  serve_embed_all(parsed, model, exchange);
}

void classify(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<ClassifyRequest>(request, labels);
  serve_classify(parsed, model, exchange);
}

void predict(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<PredictRequest>(request, labels);
  serve_predict(parsed, model, exchange);
}

void score(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<ScoreRequest>(request, scores);
  serve_score(parsed, model, exchange);
}

void ranks(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<RankRequest>(request, scores);
  serve_ranks(parsed, model, exchange);
}

void rerank(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  // text-embeddings-inference has texts; vLLM has documents, as in the other two routes.
  const Json body = parse_body(request.body);
  if (!body.contains("texts") && body.contains("documents")) return ranks(api, request, exchange);
  const auto [model, parsed] = api.read<RerankRequest>(request, reranks);
  serve_rerank(parsed, model, exchange);
}

void similarity(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<SimilarityRequest>(request, is<ServedEmbedder>);
  serve_similarity(parsed, model, exchange);
}

template <infer::ClassifierTask task>
bool does(const ServedModel& model) {
  const auto* const tagger = model.find<ServedTagger>();
  return tagger != nullptr && tagger->model.task() == task;
}

void find_entities(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] =
      api.read<EntitiesRequest>(request, does<infer::ClassifierTask::words>);
  serve_entities(parsed, model, exchange);
}

void find_answers(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] =
      api.read<AnswersRequest>(request, does<infer::ClassifierTask::answers>);
  serve_answers(parsed, model, exchange);
}

void fill_masks(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<MasksRequest>(request, does<infer::ClassifierTask::masks>);
  serve_masks(parsed, model, exchange);
}

void choose_labels(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<CandidatesRequest>(request, labels);
  serve_candidates(parsed, model, exchange);
}

void info(Api& api, const http::Request&, const ExchangePtr& exchange) {
  exchange->send(json_response(info_json(*api.model(Json::object(), any))));
}

void tokenize(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<TokenizeRequest>(request, reads_text);
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

void detokenize(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<DetokenizeRequest>(request, reads_text);
  const text::Tokenizer& tokenizer = model->needs_tokenizer();
  int64_t bytes = 0;
  for (const int32_t id : parsed.ids) bytes += std::ssize(tokenizer.text_of(id));
  check_response_bytes(2 * bytes, "tokens", "with fewer tokens");
  const std::string text = tokenizer.decode(parsed.ids, parsed.skip_special);
  // The names of llama.cpp and of vLLM.
  exchange->send(json_response({{"content", text}, {"prompt", text}}));
}

void decode(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read<DecodeRequest>(request, reads_text);
  exchange->send(json_response(decoded_texts(parsed, model->needs_tokenizer())));
}

// As text-embeddings-inference and Hugging Face's services do: what the model is for.
void vectors_or_labels(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const Json body = parse_body(request.body);
  const auto model = api.model(body, [](const ServedModel& served) {
    return is<ServedSparseEmbedder>(served) || scores(served) || labels(served) ||
           is<ServedTagger>(served);
  });
  if (const auto* tagger = model->find<ServedTagger>()) {
    switch (tagger->model.task()) {
      case infer::ClassifierTask::words: return find_entities(api, request, exchange);
      case infer::ClassifierTask::answers: return find_answers(api, request, exchange);
      case infer::ClassifierTask::masks: return fill_masks(api, request, exchange);
      case infer::ClassifierTask::texts: break;
    }
  }
  if (is<ServedSparseEmbedder>(*model)) return embed_sparse(api, request, exchange);
  if (reranks(*model)) return rerank(api, request, exchange);
  if (!labels(*model)) return embed(api, request, exchange);
  const auto parameters = body.find("parameters");
  const bool candidates = parameters != body.end() && parameters->is_object() &&
                          parameters->contains("candidate_labels");
  return candidates ? choose_labels(api, request, exchange) : predict(api, request, exchange);
}

}  // namespace

void add_encoder_routes(http::Router& router, Api& api) {
  const auto add = [&](const char* method, const char* path, Answer answer,
                       ErrorShape shape = ErrorShape::openai) {
    router.add(api_route(api, method, path, answer, shape));
  };
  add("POST", "/embed", embed, ErrorShape::embeddings);
  add("POST", "/embed_sparse", embed_sparse, ErrorShape::embeddings);
  add("POST", "/embed_all", embed_all, ErrorShape::embeddings);
  add("POST", "/rerank", rerank, ErrorShape::embeddings);
  for (const char* path : {"/classify", "/v1/classify"}) add("POST", path, classify);
  add("POST", "/predict", predict, ErrorShape::embeddings);
  for (const char* path : {"/score", "/v1/score"}) add("POST", path, score);
  for (const char* path : {"/v1/rerank", "/v2/rerank", "/reranking", "/v1/reranking"})
    add("POST", path, ranks);
  add("POST", "/similarity", similarity, ErrorShape::embeddings);
  add("POST", EntitiesRequest::kPath, find_entities, ErrorShape::embeddings);
  add("POST", AnswersRequest::kPath, find_answers, ErrorShape::embeddings);
  add("POST", MasksRequest::kPath, fill_masks, ErrorShape::embeddings);
  add("POST", CandidatesRequest::kPath, choose_labels, ErrorShape::embeddings);
  add("GET", "/info", info);
  add("POST", "/tokenize", tokenize);
  add("POST", "/detokenize", detokenize);
  add("POST", "/decode", decode, ErrorShape::embeddings);
  add("POST", "/", vectors_or_labels, ErrorShape::embeddings);
}

}  // namespace fovea::serve
