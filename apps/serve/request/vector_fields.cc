// The fields of requests for vectors, and of /rerank.

#include "serve/request/described_field.h"
#include "serve/request/field_values.h"

namespace fovea::serve {
namespace {

using Vectors = VectorRequest;

void put_encoding(const Json& value, OpenAIEmbedRequest& request) {
  request.base64 = value == "base64";
  if (request.base64 || value == "float") return;
  throw ApiError{400, "encoding_format: expected float or base64", "encoding_format",
                 "invalid_value"};
}

Field<Vectors> vector_option(const std::string& name, const std::string& option,
                             const std::string& initial = {}) {
  return described(name, &Vectors::options, option, initial);
}

Field<Vectors> inputs_field(const char* name, const char* results) {
  return {{name, FieldType::prompts, 1, kMostInputs, "",
           std::string("a text or token ids, or an array of them; one ") + results + " each", true},
          [](const Json& v, Vectors& r) { r.inputs = prompts_of(v); }};
}

// Those of text-embeddings-inference.
Fields<Vectors> shared_fields() {
  return {model_field(), inputs_field("inputs", "result"),
          bounded(0, 256, vector_option("prompt_name", "prompt_name", "the model's default")),
          vector_option("truncate", "truncate"), direction_field()};
}

}  // namespace

template <>
const Fields<OpenAIEmbedRequest>& fields_of() {
  static const Fields<OpenAIEmbedRequest> all = {
      model_field(),
      inputs_field("input", "vector"),
      {{"encoding_format", FieldType::text, 0, 16, "float",
        "float, or base64 of 4 bytes per number, little-endian"},
       put_encoding},
      vector_option("dimensions", "dimensions", "all")};
  return all;
}

template <>
const Fields<EmbedRequest>& fields_of() {
  static const Fields<EmbedRequest> all =
      joined<EmbedRequest>({}, shared_fields(),
                           {vector_option("dimensions", "dimensions", "all"),
                            vector_option("normalize", "normalise", "true")});
  return all;
}

template <>
const Fields<SparseEmbedRequest>& fields_of() {
  static const Fields<SparseEmbedRequest> all = joined<SparseEmbedRequest>({}, shared_fields(), {});
  return all;
}

template <>
const Fields<TokenEmbedRequest>& fields_of() {
  static const Fields<TokenEmbedRequest> all = joined<TokenEmbedRequest>({}, shared_fields(), {});
  return all;
}

template <>
const Fields<RerankRequest>& fields_of() {
  static const Fields<RerankRequest> all = {
      model_field(),
      {{"query", FieldType::text, 0, kMostText, "", "the query", true},
       [](const Json& v, RerankRequest& r) { r.query = v; }},
      {{"texts", FieldType::strings, 1, kMostInputs, "", "texts to score", true},
       [](const Json& v, RerankRequest& r) { r.texts = v.get<std::vector<std::string>>(); }},
      described("raw_scores", &RerankRequest::options, "raw"),
      {{"return_text", FieldType::boolean, 0, 0, "false", "return each text with its score"},
       [](const Json& v, RerankRequest& r) { r.return_text = v; }},
      described("truncate", &RerankRequest::options, "truncate"),
      direction_field()};
  return all;
}

}  // namespace fovea::serve
