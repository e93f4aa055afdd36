#include "serve/protocols/classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <numeric>

#include "serve/routes/queue_response.h"
#include "serve/routes/response_json.h"
#include "serve/routes/response_limits.h"
#include "tuning/random_id.h"

namespace fovea::serve {
namespace {

// {"id", "object", "created", "model"}
Json list_head(const char* prefix, const std::string& model) {
  return {{"id", tuning::random_id(prefix)},
          {"object", "list"},
          {"created", std::time(nullptr)},
          {"model", model}};
}

Json usage_of(int64_t tokens) { return {{"prompt_tokens", tokens}, {"total_tokens", tokens}}; }

std::string classify_body(const infer::Classifications& result, const std::string& model) {
  Json body = list_head("classify-", model);
  Json data = Json::array();
  for (int64_t i = 0; i < result.count; ++i) {
    const float* row = result.row(i);
    data.push_back({{"index", i},
                    {"label", result.labels[result.order(i).front()]},
                    {"probs", std::vector<float>(row, row + result.labels.size())},
                    {"num_classes", result.labels.size()}});
  }
  body["data"] = std::move(data);
  const int64_t tokens = std::accumulate(result.tokens.begin(), result.tokens.end(), int64_t{0});
  body["usage"] = usage_of(tokens);
  return json_line(body);
}

std::string predict_body(const infer::Classifications& result, bool many) {
  Json all = Json::array();
  for (int64_t i = 0; i < result.count; ++i) {
    Json labels = Json::array();
    for (const size_t label : result.order(i))
      labels.push_back({{"score", result.row(i)[label]}, {"label", result.labels[label]}});
    all.push_back(std::move(labels));
  }
  return json_line(many ? all : all.front());
}

void classify(const LabelRequest& request, const ServedPtr& model, const ExchangePtr& exchange,
              ErrorShape shape, const char* param,
              const std::function<std::string(const infer::Classifications&)>& render) {
  const ServedClassifier& classifier = model->needs<ServedClassifier>();
  // A label with its score takes fewer bytes in JSON than this and the label's name.
  int64_t row_bytes = 64;
  for (const std::string& label : classifier.model.labels())
    row_bytes += 64 + 2 * std::ssize(label);
  check_response_bytes(std::ssize(request.inputs) * row_bytes, param, "with fewer texts");
  for (const infer::TextInput& input : request.inputs)
    if (input.text.empty())
      throw ApiError{400, fmt::format("{}: expected at least one character in each text", param),
                     param, "empty"};
  infer::ClassifyOptions options = request.options;
  options.name_of_text = [param](size_t i) { return fmt::format("{}[{}]", param, i); };
  options.stop = [exchange] { return exchange->gone(); };
  respond_from<infer::Classifications>(
      classifier.queue, exchange, shape,
      [&](const auto& done) { return classifier.queue->submit(request.inputs, options, done); },
      render);
}

std::string score_body(const infer::RerankScores& scores, const std::string& model) {
  Json body = list_head("score-", model);
  Json data = Json::array();
  for (size_t i = 0; i < scores.values.size(); ++i)
    data.push_back({{"index", i}, {"object", "score"}, {"score", scores.values[i]}});
  body["data"] = std::move(data);
  body["usage"] = usage_of(scores.tokens);
  return json_line(body);
}

std::string ranks_body(const std::vector<float>& scores, const RankRequest& request,
                       const std::string& model) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  if (request.most_results > 0)
    order.resize(std::min(order.size(), static_cast<size_t>(request.most_results)));
  Json results = Json::array();
  for (const size_t i : order) {
    Json result = {{"index", i}, {"relevance_score", scores[i]}};
    if (request.return_documents) result["document"] = {{"text", request.documents[i]}};
    results.push_back(std::move(result));
  }
  return json_line({{"id", tuning::random_id("rerank-")}, {"model", model}, {"results", results}});
}

// Returns the similarity of vectors first[i] and second[i], and the tokens of all pairs.
infer::RerankScores similarities(const infer::Embedder& embedder, const infer::Embeddings& vectors,
                                 const std::vector<size_t>& first,
                                 const std::vector<size_t>& second) {
  const ArrayView view = vectors.view();
  infer::RerankScores scores;
  for (size_t i = 0; i < first.size(); ++i) {
    scores.values.push_back(embedder.similarity(view.row<float>(static_cast<int64_t>(first[i])),
                                                view.row<float>(static_cast<int64_t>(second[i]))));
    scores.tokens += vectors.tokens[first[i]] + vectors.tokens[second[i]];
  }
  return scores;
}

// Scores the pairs (first[i], second[i]), or of the only first text and second[i], by a
// cross-encoder, a late interaction model or an embedding model.
void score_pairs(const std::vector<std::string>& first, const std::vector<std::string>& second,
                 const ServedPtr& model, const ExchangePtr& exchange, ErrorShape shape,
                 const std::function<std::string(const infer::RerankScores&)>& render) {
  if (const auto* late = model->find<ServedMultiVectorEmbedder>()) {
    return respond_from<infer::RerankScores>(
        late->queue, exchange, shape,
        [&](const auto& done) { return late->queue->submit_scores(first, second, {}, done); },
        render);
  }
  const auto* const embedder = model->find<ServedEmbedder>();
  if (embedder == nullptr) {
    const auto& queue = model->needs<ServedReranker>().queue;
    infer::RerankOptions options;
    options.stop = [exchange] { return exchange->gone(); };
    return respond_from<infer::RerankScores>(
        queue, exchange, shape,
        [&](const auto& done) { return queue->submit(first, second, options, done); }, render);
  }
  std::vector<std::string> texts;  // of equal texts in a row only one
  const auto index_of = [&](const std::string& text) {
    if (texts.empty() || texts.back() != text) texts.push_back(text);
    return texts.size() - 1;
  };
  std::vector<size_t> firsts, seconds;
  for (const std::string& text : first) firsts.push_back(index_of(text));
  for (const std::string& text : second) seconds.push_back(index_of(text));
  firsts.resize(seconds.size(), firsts.front());
  infer::EmbedOptions options;
  options.stop = [exchange] { return exchange->gone(); };
  respond_from<infer::Embeddings>(
      embedder->queue, exchange, shape,
      [&](const auto& done) { return embedder->queue->submit(texts, options, done); },
      [=, model = embedder->model](const infer::Embeddings& vectors) {
        return render(similarities(model, vectors, firsts, seconds));
      });
}

}  // namespace

void serve_classify(const ClassifyRequest& request, const ServedPtr& model,
                    const ExchangePtr& exchange) {
  classify(request, model, exchange, ErrorShape::openai, "input",
           [name = model->facts.name](const auto& result) { return classify_body(result, name); });
}

void serve_predict(const PredictRequest& request, const ServedPtr& model,
                   const ExchangePtr& exchange) {
  classify(request, model, exchange, ErrorShape::embeddings, "inputs",
           [many = request.many](const auto& result) { return predict_body(result, many); });
}

void serve_score(const ScoreRequest& request, const ServedPtr& model, const ExchangePtr& exchange) {
  const std::vector<std::string>& first = request.first;
  if (first.size() != 1 && first.size() != request.second.size())
    throw ApiError{400,
                   fmt::format("text_1: {} texts; expected 1 or {}, the number of text_2",
                               first.size(), request.second.size()),
                   "text_1", "out_of_range"};
  score_pairs(first, request.second, model, exchange, ErrorShape::openai,
              [name = model->facts.name](const auto& scores) { return score_body(scores, name); });
}

void serve_ranks(const RankRequest& request, const ServedPtr& model, const ExchangePtr& exchange) {
  score_pairs({request.query}, request.documents, model, exchange, ErrorShape::openai,
              [request, name = model->facts.name](const auto& scores) {
                return ranks_body(scores.values, request, name);
              });
}

void serve_similarity(const SimilarityRequest& request, const ServedPtr& model,
                      const ExchangePtr& exchange) {
  model->needs<ServedEmbedder>();
  score_pairs({request.text}, request.others, model, exchange, ErrorShape::embeddings,
              [](const infer::RerankScores& scores) { return json_line(Json(scores.values)); });
}

}  // namespace fovea::serve
