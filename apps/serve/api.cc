#include "serve/api.h"

#include <fmt/format.h>

#include "fovea/error.h"
#include "serve/answer_json.h"
#include "serve/fields.h"
#include "serve/generation.h"
#include "serve/prompts.h"

namespace fovea::serve {
namespace {

Response json_response(const Json& json) {
  Response response;
  response.body = dumped(json) + "\n";
  return response;
}

Response error_response(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::InvalidArgument:
    case ErrorKind::Unsupported: return serve::error_response(400, error.what());
    case ErrorKind::OutOfMemory: return serve::error_response(503, error.what());
    default: return serve::error_response(500, error.what());
  }
}

// What a handler throws becomes an answer.
Handler guarded(Handler handler) {
  return [handler = std::move(handler)](Request request, std::shared_ptr<Exchange> exchange) {
    try {
      handler(std::move(request), exchange);
    } catch (const ApiError& error) {
      exchange->send(serve::error_response(error.status, error.message, error.param, error.code));
    } catch (const Error& error) {
      exchange->send(error_response(error));
    } catch (const std::bad_alloc&) {
      exchange->send(serve::error_response(503, "no memory is left for this request"));
    }
  };
}

Json model_json(const ServedModel& model) {
  const ModelFacts& facts = model.facts;
  return {{"id", facts.name},
          {"object", "model"},
          {"created", facts.created},
          {"owned_by", "fovea"},
          {"max_model_len", facts.context},
          {"meta",
           {{"n_ctx_train", facts.context},
            {"n_embd", facts.width},
            {"n_params", facts.parameters},
            {"n_vocab", facts.vocabulary}}}};
}

}  // namespace

Api::Api(std::vector<std::shared_ptr<ServedModel>> models) : models_(std::move(models)) {}

std::shared_ptr<ServedModel> Api::model(const Json& body) const {
  const auto name = body.find("model");
  if (name == body.end() || !name->is_string() || name->get_ref<const std::string&>().empty()) {
    return models_.front();
  }
  for (const auto& model : models_) {
    if (model->facts.name == *name) return model;
  }
  throw ApiError{404, "model: there is no such model here; GET /v1/models lists them", "model",
                 "model_not_found"};
}

void Api::list_models(const Answer& answer) const {
  Json data = Json::array();
  for (const auto& model : models_) data.push_back(model_json(*model));
  answer->send(json_response({{"object", "list"}, {"data", data}}));
}

void Api::one_model(const Request& request, const Answer& answer) const {
  answer->send(json_response(model_json(*model({{"model", request.rest}}))));
}

void Api::generate(const Request& request, const Answer& answer, bool chat) {
  const Json body = parse_body(request.body);
  const std::shared_ptr<ServedModel> served = model(body);
  ApiRequest asked;
  asked.options = served->defaults;
  constexpr int64_t kCompletionTokens = 16;  // as OpenAI's API has it; a chat may fill the context
  asked.options.max_tokens = served->max_tokens.value_or(chat ? -1 : kCompletionTokens);
  read_fields(body, chat ? kChat : kCompletion, served->facts.vocabulary, asked);
  const PreparedPrompts prompts = prepare(asked, chat, *served);
  const auto job =
      std::make_shared<GenerationJob>(std::move(asked), chat, served, answer, metrics_);
  job->start(prompts.ids, prompts.find_calls);
}

void Api::tokenize(const Request& request, const Answer& answer) const {
  const Json body = parse_body(request.body);
  const std::shared_ptr<ServedModel> served = model(body);
  ApiRequest asked;
  read_fields(body, kTokenize, served->facts.vocabulary, asked);
  const Tokenizer& tokenizer = served->needs_tokenizer();
  EncodingOptions options;
  options.add_special_tokens = asked.add_special;
  options.truncate_and_pad = false;
  options.special = asked.parse_special ? SpecialTokens::parsed : SpecialTokens::as_text;
  const std::vector<int32_t> ids = tokenizer.encoding(asked.text, options).ids;
  Json tokens = Json::array();
  for (const int32_t id : ids) {
    if (asked.with_pieces) {
      tokens.push_back({{"id", id}, {"piece", tokenizer.bytes_of(id)}});
    } else {
      tokens.push_back(id);
    }
  }
  answer->send(json_response(
      {{"tokens", tokens}, {"count", ids.size()}, {"max_model_len", served->facts.context}}));
}

void Api::detokenize(const Request& request, const Answer& answer) const {
  const Json body = parse_body(request.body);
  const std::shared_ptr<ServedModel> served = model(body);
  ApiRequest asked;
  read_fields(body, kDetokenize, served->facts.vocabulary, asked);
  const std::string text = served->needs_tokenizer().decode(asked.ids, asked.skip_special);
  answer->send(json_response({{"content", text}}));
}

Router Api::router() {
  Router router;
  const auto add = [&](const char* method, const char* path, Handler handler,
                       bool needs_key = true) {
    router.add({method, path, needs_key, guarded(std::move(handler))});
  };
  for (const char* path : {"/health", "/v1/health"}) {
    add(
        "GET", path,
        [](const Request&, const Answer& answer) {
          answer->send(json_response({{"status", "ok"}}));
        },
        false);
  }
  add("GET", "/metrics", [this](const Request&, const Answer& answer) {
    answer->send({200, "text/plain; version=0.0.4; charset=utf-8", {}, metrics_.text(models_)});
  });
  add("GET", "/v1/models", [this](const Request&, const Answer& answer) { list_models(answer); });
  add("GET", "/v1/models/{id}",
      [this](const Request& request, const Answer& answer) { one_model(request, answer); });
  add("POST", "/v1/completions",
      [this](const Request& request, const Answer& answer) { generate(request, answer, false); });
  add("POST", "/v1/chat/completions",
      [this](const Request& request, const Answer& answer) { generate(request, answer, true); });
  add("POST", "/tokenize",
      [this](const Request& request, const Answer& answer) { tokenize(request, answer); });
  add("POST", "/detokenize",
      [this](const Request& request, const Answer& answer) { detokenize(request, answer); });
  return router;
}

}  // namespace fovea::serve
