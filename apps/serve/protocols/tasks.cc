#include "serve/protocols/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fovea/core/options.h"
#include "serve/routes/response_json.h"
#include "serve/routes/response_limits.h"

namespace fovea::serve {
namespace {

const infer::Classifier& needs_task(ServedModel& model, infer::ClassifierTask task,
                                    const char* expected) {
  const infer::Classifier& classifier = model.needs<ServedTagger>().model;
  if (classifier.task() == task) return classifier;
  throw ApiError{400, fmt::format("model: {}: expected {}", model.facts.name, expected), "model",
                 "wrong_model"};
}

infer::ClassifyOptions options_of(const TaskRequest& request, const ServedPtr& model,
                                  const ExchangePtr& exchange) {
  infer::ClassifyOptions options = request.options;
  options.name_of_text = [many = request.many](size_t i) {
    return many ? fmt::format("inputs[{}]", i) : "inputs";
  };
  options.stop = [exchange, pool = model->worker.get()] {
    return exchange->gone() || pool->stopping();
  };
  return options;
}

// The error of an option, under the name of the request's parameter.
ApiError parameter_error(const FieldError& error) {
  static const std::map<std::string, const char*> names = {
      {"hypothesis", "hypothesis_template"},
      {"labels", "candidate_labels"},
      {"null_answer", "handle_impossible_answer"},
      {"answer_tokens", "max_answer_len"},
      {"window", "max_seq_len"}};
  const auto found = names.find(error.field());
  if (found == names.end()) return api_error(std::make_exception_ptr(error));
  const std::string field = std::string("parameters.") + found->second;
  const std::string message = error.what();
  return {400, field + message.substr(error.field().size()), field, "invalid_value"};
}

// Sends the result of `work()` [inputs] from the model's worker.
template <class Work>
void respond_on_worker(const TaskRequest& request, const ServedPtr& model,
                       const ExchangePtr& exchange, const Work& work) {
  const auto run = [=, many = request.many] {
    if (exchange->gone()) return;
    try {
      const Json all = work();
      exchange->send({200, "application/json", {}, json_line(many ? all : all.front())});
    } catch (const FieldError& error) {
      exchange->send(error_response(ErrorShape::embeddings, parameter_error(error)));
    } catch (...) {
      exchange->send(error_response(ErrorShape::embeddings, api_error(std::current_exception())));
    }
  };
  if (!model->worker->run(run)) throw too_busy();
}

int64_t bytes_of(const std::vector<std::string>& texts) {
  int64_t bytes = 0;
  for (const std::string& text : texts) bytes += std::ssize(text);
  return bytes;
}

int64_t count_of(const std::string& part, const std::string& text) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

Json answer_json(const infer::ExtractedAnswer& answer) {
  return {{"answer", answer.text},
          {"score", answer.score},
          {"start", answer.span.begin},
          {"end", answer.span.end}};
}

// The candidates of the masks of one text.
Json masks_json(const std::vector<infer::MaskCandidates>& masks) {
  Json all = Json::array();
  for (const infer::MaskCandidates& mask : masks) {
    Json& candidates = all.emplace_back(Json::array());
    for (const infer::MaskCandidate& candidate : mask)
      candidates.push_back({{"score", candidate.score},
                            {"token", candidate.id},
                            {"token_str", candidate.token},
                            {"sequence", candidate.text}});
  }
  return all.size() == 1 ? all.front() : all;
}

}  // namespace

void serve_entities(const EntitiesRequest& request, const ServedPtr& model,
                    const ExchangePtr& exchange) {
  const auto& classifier = needs_task(*model, infer::ClassifierTask::words,
                                      "a model of entities, whose head labels tokens");
  constexpr int64_t kBytesOfEntity = 96;  // a text has at most one for each byte
  check_response_bytes(bytes_of(request.texts) * kBytesOfEntity, "inputs", "with shorter texts");
  const char* const label =
      request.options.joining == infer::EntityJoining::none ? "entity" : "entity_group";
  const infer::ClassifyOptions options = options_of(request, model, exchange);
  respond_on_worker(request, model, exchange, [=, texts = request.texts] {
    Json all = Json::array();
    for (const auto& entities : classifier.find_entities(texts, options)) {
      Json& list = all.emplace_back(Json::array());
      for (const infer::Entity& entity : entities)
        list.push_back({{label, entity.label},
                        {"score", entity.score},
                        {"word", entity.text},
                        {"start", entity.span.begin},
                        {"end", entity.span.end}});
    }
    return all;
  });
}

void serve_answers(const AnswersRequest& request, const ServedPtr& model,
                   const ExchangePtr& exchange) {
  const auto& classifier = needs_task(*model, infer::ClassifierTask::answers,
                                      "a model that finds answers, whose head marks spans");
  const int64_t most = std::max<int64_t>(request.options.top, 1);  // answers of a question
  constexpr int64_t kBytesOfAnswer = 96, kBytesOfToken = 16;
  check_response_bytes(std::ssize(request.questions) * most *
                           (kBytesOfAnswer + kBytesOfToken * request.options.answer_tokens),
                       "parameters.top_k", "with fewer or shorter answers");
  const infer::ClassifyOptions options = options_of(request, model, exchange);
  respond_on_worker(request, model, exchange, [=, questions = request.questions] {
    Json all = Json::array();
    for (const auto& answers : classifier.answer(questions, options)) {
      Json list = Json::array();
      for (const infer::ExtractedAnswer& answer : answers) list.push_back(answer_json(answer));
      all.push_back(most == 1 && !list.empty() ? list.front() : std::move(list));
    }
    return all;
  });
}

void serve_masks(const MasksRequest& request, const ServedPtr& model, const ExchangePtr& exchange) {
  const auto& classifier =
      needs_task(*model, infer::ClassifierTask::masks, "a masked language model");
  constexpr int64_t kUsualCandidates = 5, kBytesOfCandidate = 128;
  const int64_t most = request.options.top > 0 ? request.options.top : kUsualCandidates;
  int64_t bytes = 0;
  for (const std::string& text : request.texts)
    bytes +=
        count_of(classifier.mask_token(), text) * most * (std::ssize(text) + kBytesOfCandidate);
  check_response_bytes(bytes, "inputs", "with fewer masks or a smaller top_k");
  const infer::ClassifyOptions options = options_of(request, model, exchange);
  respond_on_worker(request, model, exchange, [=, texts = request.texts] {
    Json all = Json::array();
    for (const auto& masks : classifier.fill_masks(texts, options))
      all.push_back(masks_json(masks));
    return all;
  });
}

void serve_candidates(const CandidatesRequest& request, const ServedPtr& model,
                      const ExchangePtr& exchange) {
  const infer::Classifier& classifier = model->needs<ServedClassifier>().model;
  const int64_t row = 64 * std::ssize(request.options.labels) + bytes_of(request.options.labels);
  check_response_bytes(std::ssize(request.texts) * row, "inputs", "with fewer texts");
  const infer::ClassifyOptions options = options_of(request, model, exchange);
  respond_on_worker(request, model, exchange, [=, texts = request.texts] {
    const infer::Classifications result = classifier.classify_by(texts, options);
    Json all = Json::array();
    for (int64_t i = 0; i < result.count; ++i) {
      Json& list = all.emplace_back(Json::array());
      for (const size_t label : result.order(i))
        list.push_back({{"label", result.labels[label]}, {"score", result.row(i)[label]}});
    }
    return all;
  });
}

}  // namespace fovea::serve
