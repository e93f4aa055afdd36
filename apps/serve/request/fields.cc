#include "serve/request/fields.h"

#include <algorithm>
#include <cstring>

#include "serve/request/field_values.h"

namespace fovea::serve {
namespace {

template <class Request>
RouteFields route_with_fields() {
  RouteFields route{Request::kPath, {}};
  for (const Field<Request>& field : fields_of<Request>()) route.fields.push_back(field.info);
  return route;
}

const char* name_of(FieldType type) {
  static const char* const names[] = {"boolean",
                                      "integer",
                                      "number",
                                      "text",
                                      "stops",
                                      "strings",
                                      "texts",
                                      "ids",
                                      "prompts",
                                      "biases",
                                      "messages",
                                      "array",
                                      "object",
                                      "automatic_integer",
                                      "automatic_number",
                                      "any"};
  return names[static_cast<int>(type)];
}

}  // namespace

Field<ModelRequest> direction_field() {
  return {{"truncation_direction", FieldType::text, 0, 16, "right",
           "the side to truncate; only right is supported"},
          [](const Json& value, ModelRequest&) {
            if (value == "right" || value == "Right") return;
            throw ApiError{400,
                           "truncation_direction: expected right; texts are truncated at the end",
                           "truncation_direction", "invalid_value"};
          }};
}

std::vector<std::string> texts_of(const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  return value.get<std::vector<std::string>>();
}

std::vector<Prompt> prompts_of(const Json& value) {
  std::vector<Prompt> all;
  const auto one = [&](const Json& prompt) {
    if (prompt.is_string()) {
      all.emplace_back(prompt.get<std::string>());
    } else {
      all.emplace_back(prompt.get<std::vector<int32_t>>());
    }
  };
  const bool many = value.is_array() && !value.empty() && !value[0].is_number();
  if (!many) {
    one(value);
  } else {
    for (const Json& prompt : value) one(prompt);
  }
  return all;
}

const std::vector<RouteFields>& routes_with_fields() {
  static const std::vector<RouteFields> routes = {route_with_fields<ChatRequest>(),
                                                  route_with_fields<CompletionRequest>(),
                                                  route_with_fields<TokenizeRequest>(),
                                                  route_with_fields<DetokenizeRequest>(),
                                                  route_with_fields<OpenAIEmbedRequest>(),
                                                  route_with_fields<EmbedRequest>(),
                                                  route_with_fields<SparseEmbedRequest>(),
                                                  route_with_fields<TokenEmbedRequest>(),
                                                  route_with_fields<RerankRequest>(),
                                                  route_with_fields<ClassifyRequest>(),
                                                  route_with_fields<PredictRequest>(),
                                                  route_with_fields<EntitiesRequest>(),
                                                  route_with_fields<AnswersRequest>(),
                                                  route_with_fields<MasksRequest>(),
                                                  route_with_fields<CandidatesRequest>(),
                                                  route_with_fields<ScoreRequest>(),
                                                  route_with_fields<RankRequest>(),
                                                  route_with_fields<SimilarityRequest>(),
                                                  route_with_fields<TranslateRequest>(),
                                                  route_with_fields<DetectRequest>(),
                                                  route_with_fields<FineTuningRequest>(),
                                                  route_with_fields<OllamaChatRequest>(),
                                                  route_with_fields<OllamaGenerateRequest>(),
                                                  route_with_fields<OllamaEmbedRequest>(),
                                                  route_with_fields<OllamaEmbeddingsRequest>(),
                                                  route_with_fields<LlamaCompletionRequest>(),
                                                  route_with_fields<InfillRequest>(),
                                                  route_with_fields<ApplyTemplateRequest>(),
                                                  route_with_fields<LlamaEmbedRequest>(),
                                                  route_with_fields<DecodeRequest>(),
                                                  route_with_fields<ResponsesRequest>(),
                                                  route_with_fields<AnthropicRequest>(),
                                                  route_with_fields<AnthropicCountRequest>(),
                                                  route_with_fields<BatchRequest>()};
  return routes;
}

const std::vector<FieldInfo>& fields_of_route(const char* path) {
  const auto& routes = routes_with_fields();
  return std::find_if(routes.begin(), routes.end(),
                      [&](const RouteFields& route) { return std::strcmp(route.path, path) == 0; })
      ->fields;
}

// A field that several routes have is one entry.
std::string fields_json() {
  std::vector<std::pair<FieldInfo, Json>> entries;  // with their paths
  for (const RouteFields& route : routes_with_fields()) {
    for (const FieldInfo& field : route.fields) {
      auto entry = std::find_if(entries.begin(), entries.end(),
                                [&](const auto& each) { return each.first == field; });
      if (entry == entries.end()) entry = entries.insert(entry, {field, Json::array()});
      entry->second.push_back(route.path);
    }
  }
  Json all = Json::array();
  for (const auto& [field, paths] : entries) {
    all.push_back({{"name", field.name},
                   {"of", paths},
                   {"type", name_of(field.type)},
                   {"least", field.least},
                   {"most", field.most},
                   {"default", field.initial},
                   {"required", field.required},
                   {"help", field.help}});
  }
  return all.dump();
}

}  // namespace fovea::serve
