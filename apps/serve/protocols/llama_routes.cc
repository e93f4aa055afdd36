#include "serve/protocols/llama_routes.h"

#include <fmt/format.h>

#include "fovea/core/machine.h"
#include "serve/generation/custom_tools.h"
#include "serve/generation/generation.h"
#include "serve/generation/prompts.h"
#include "serve/protocols/info.h"
#include "serve/protocols/llama_format.h"
#include "serve/protocols/vectors.h"
#include "serve/routes/handlers.h"

namespace fovea::serve {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

void llama_defaults(LlamaCompletionRequest& request, ServedModel& model) {
  constexpr int64_t kTokens = -1;  // as many as the context has room for
  apply_defaults(request, model, kTokens);
}

void send_completion(Api& api, const char* path, LlamaCompletionRequest request,
                     const std::shared_ptr<ServedModel>& model, const ExchangePtr& exchange) {
  if (request.stream) request.return_ids = true;
  const PreparedPrompts prompts = prepare(request, *model, *exchange);
  for (const std::string& warning : request.warnings)
    api.warn_once(fmt::format("{}: {}", path, warning));
  auto format = llama_completion(request, model->facts.name, model->facts.context);
  std::make_shared<GenerationJob>(std::move(request), std::move(format), model, exchange,
                                  api.metrics())
      ->start(prompts);
}

void complete_text(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  auto [model, parsed] = api.read_body<LlamaCompletionRequest>(parse_body(request.body),
                                                               is<TextGenerator>, llama_defaults);
  if (parsed.echo)
    throw ApiError{400, "echo: expected false; /v1/completions returns the prompt", "echo",
                   "invalid_value"};
  send_completion(api, LlamaCompletionRequest::kPath, std::move(parsed), model, exchange);
}

// Returns the tokens of other files, the text before and after, and the beginning of the middle. If
// the tokenizer has a token that separates files, each begins with it and its name.
std::vector<int32_t> infill_ids(const InfillRequest& request, const text::Tokenizer& tokenizer) {
  const std::optional<MiddleTokens> tokens = middle_tokens(tokenizer);
  if (!tokens)
    throw ApiError{400,
                   "model: the tokenizer has no tokens to fill in the middle of a text; expected a "
                   "model that was trained to",
                   "model", "wrong_model"};
  std::vector<int32_t> ids;
  const auto append = [&](const std::string& text) {
    const auto more = tokenizer.encode(text, text::SpecialTokens::as_text);
    ids.insert(ids.end(), more.begin(), more.end());
  };
  std::optional<int32_t> separator = tokenizer.id_of("<|file_sep|>");
  if (!separator) separator = tokenizer.id_of("<file_sep>");
  for (const Json& file : request.files) {
    const auto text = file["text"].get<std::string>();
    if (separator) {
      ids.push_back(*separator);
      append(file.value("filename", "tmp") + "\n" + text);
    } else {
      append("\n\n--- snippet ---\n\n" + text);
    }
  }
  if (separator && !request.files.empty()) {
    ids.push_back(*separator);
    append("filename\n");
  }
  ids.push_back(tokens->prefix);
  append(request.before);
  ids.push_back(tokens->suffix);
  append(request.after);
  ids.push_back(tokens->middle);
  append(request.beginning);
  return ids;
}

void fill_in(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  auto [model, parsed] =
      api.read_body<InfillRequest>(parse_body(request.body), is<TextGenerator>, llama_defaults);
  parsed.prompts = {infill_ids(parsed, model->needs_tokenizer())};
  send_completion(api, InfillRequest::kPath, std::move(parsed), model, exchange);
}

void apply_template(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  auto [model, parsed] = api.read_body<ApplyTemplateRequest>(
      parse_body(request.body), is<TextGenerator>, [](ChatRequest&, ServedModel&) {});
  convert_custom_tools(parsed);
  exchange->send(json_response({{"prompt", rendered_chat(parsed, *model)}}));
}

void embed_text(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto [model, parsed] = api.read_body<LlamaEmbedRequest>(
      parse_body(request.body),
      [](const ServedModel& served) { return served.find<ServedEmbedder>() != nullptr; },
      [](VectorRequest& defaults, const ServedModel&) { defaults.options.normalise = true; });
  if (parsed.inputs.empty())
    throw ApiError{400, "content: is missing; expected a text", "content",
                   "missing_required_parameter"};
  serve_vectors(parsed, false, parsed.field, ErrorShape::openai, model, exchange,
                [](const infer::Embeddings& embeddings) {
                  const ArrayView vectors = embeddings.view();
                  std::string body = "[";
                  for (int64_t i = 0; i < embeddings.count; ++i) {
                    body += fmt::format("{}{{\"index\":{},\"embedding\":[", i > 0 ? "," : "", i);
                    add_vector(body, vectors.row<float>(i), false);
                    body += "]}";
                  }
                  return body + "]\n";
                });
}

// llama.cpp's server reads `content`; OpenAI's API, without /v1, reads `input`.
void embed_either(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const Json body = parse_body(request.body);
  if (body.contains("content") && !body.contains("input"))
    return embed_text(api, request, exchange);
  const auto [model, parsed] = api.read_body<OpenAIEmbedRequest>(
      body, [](const ServedModel& served) { return served.find<ServedEmbedder>() != nullptr; },
      [](VectorRequest&, const ServedModel&) {});
  serve_openai_embeddings(parsed, model, exchange);
}

// The model that the query names, or the first of those that are `able`.
std::shared_ptr<ServedModel> model_of_query(Api& api, const http::Request& request,
                                            Api::Able able = is<TextGenerator>) {
  const auto name = request.query.find("model");
  return api.model({{"model", name == request.query.end() ? "" : name->second}}, able);
}

void show_tokenizer(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto model = model_of_query(
      api, request, [](const ServedModel& served) { return served.tokenizer.has_value(); });
  exchange->send(json_response(tokenizer_info_json(*model)));
}

std::string token_text(const text::Tokenizer& tokenizer, std::optional<int32_t> id) {
  return id ? std::string(tokenizer.text_of(*id)) : "";
}

void show_properties(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto model = model_of_query(api, request);
  const ModelFacts& facts = model->facts;
  const auto* const generator = model->find<TextGenerator>();
  const bool generates = generator != nullptr && generator->engine;
  infer::GenerateOptions defaults = generator ? generator->defaults : infer::GenerateOptions();
  defaults.max_tokens = generator ? generator->max_tokens.value_or(-1) : -1;
  Json json = {
      {"default_generation_settings",
       {{"n_ctx", facts.context}, {"params", llama_settings(defaults, false, facts.context)}}},
      {"total_slots", generates ? generator->engine->most_sequences : 0},
      {"model_alias", facts.name},
      {"model_path", facts.name},  // the path itself is no client's business
      {"chat_template", generator && generator->chat ? generator->chat->source : ""},
      {"modalities",
       {{"vision", generator != nullptr && generator->image_prompt != nullptr},
        {"audio", model->find<ServedSpeech>() != nullptr}}},
      {"build_info", "fovea-" + version()},
      {"is_sleeping", false}};
  if (model->tokenizer) {
    json["bos_token"] = token_text(*model->tokenizer, model->tokenizer->bos_id());
    json["eos_token"] = token_text(*model->tokenizer, model->tokenizer->eos_id());
  }
  exchange->send(json_response(json));
}

// The sequences that may be in progress; the server does not tell which client has which.
void list_slots(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const auto model = model_of_query(api, request);
  const TextEngine& engine = model->needs_engine();
  const int64_t running = engine.status().running;
  const auto fails = request.query.find("fail_on_no_slot");
  if (fails != request.query.end() && fails->second == "1" && running >= engine.most_sequences)
    throw ApiError{503, "no slot is available", "", "unavailable"};
  Json slots = Json::array();
  for (int64_t i = 0; i < engine.most_sequences; ++i)
    slots.push_back({{"id", i}, {"n_ctx", model->facts.context}, {"is_processing", i < running}});
  exchange->send(json_response(slots));
}

void list_adapters(Api& api, const http::Request&, const ExchangePtr& exchange) {
  Json adapters = Json::array();
  for (const auto& model : api.models())
    if (!model->facts.parent.empty())
      adapters.push_back({{"id", adapters.size()}, {"path", model->facts.name}, {"scale", 1.0}});
  exchange->send(json_response(adapters));
}

void refuse_adapters(Api&, const http::Request&, const ExchangePtr&) {
  throw ApiError{
      501,
      "/lora-adapters: weights of adapters do not change; each adapter is a model, which "
      "the field model names",
      "", "unsupported"};
}

}  // namespace

void add_llama_routes(http::Router& router, Api& api) {
  const auto add = [&](const char* method, const char* path, Answer answer) {
    router.add(api_route(api, method, path, answer));
  };
  add("POST", LlamaCompletionRequest::kPath, complete_text);
  add("POST", InfillRequest::kPath, fill_in);
  add("POST", ApplyTemplateRequest::kPath, apply_template);
  add("POST", LlamaEmbedRequest::kPath, embed_text);
  add("POST", "/embeddings", embed_either);
  add("GET", "/props", show_properties);
  add("GET", "/tokenizer_info", show_tokenizer);
  add("GET", "/slots", list_slots);
  add("GET", "/lora-adapters", list_adapters);
  add("POST", "/lora-adapters", refuse_adapters);
}

}  // namespace fovea::serve
