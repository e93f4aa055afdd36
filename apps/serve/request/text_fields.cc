// The fields of /translate, /detect, /tokenize and /detokenize.

#include "serve/request/field_values.h"

namespace fovea::serve {
namespace {

using Translate = TranslateRequest;
using Tokenize = TokenizeRequest;

void put_format(const Json& value, Translate&) {
  if (value == "text") return;
  throw ApiError{400, "format: expected text; markup is not supported", "format", "invalid_value"};
}

}  // namespace

template <>
const Fields<Translate>& fields_of() {
  static const Fields<Translate> all = {
      model_field(),
      {{"q", FieldType::texts, 1, 256, "", "a text, or an array of texts", true},
       [](const Json& v, Translate& r) {
         r.texts = texts_of(v);
         r.many = v.is_array();
       }},
      {{"source", FieldType::text, 1, 64, "",
        "source language code, such as de; auto = the language that the model reads", true},
       [](const Json& v, Translate& r) { r.source = v; }},
      {{"target", FieldType::text, 1, 64, "", "target language code", true},
       [](const Json& v, Translate& r) { r.target = v; }},
      {{"format", FieldType::text, 0, 16, "text", "only text is supported"}, put_format},
      {{"alternatives", FieldType::integer, 0, 15, "0", "number of alternative translations"},
       [](const Json& v, Translate& r) { r.alternatives = v; }},
      {{"beam_tree", FieldType::boolean, 0, 0, "false", "return the tree of the beam search"},
       [](const Json& v, Translate& r) { r.beam_tree = v; }},
  };
  return all;
}

template <>
const Fields<DetectRequest>& fields_of() {
  static const Fields<DetectRequest> all = {
      {{"q", FieldType::text, 1, kMostText, "", "the text", true},
       [](const Json& v, DetectRequest& r) { r.text = v; }},
  };
  return all;
}

template <>
const Fields<Tokenize>& fields_of() {
  static const Fields<Tokenize> all = {
      model_field(),
      {{"content", FieldType::text, 0, kMostText, "", "the text"},
       [](const Json& v, Tokenize& r) { r.text = v; }},
      {{"prompt", FieldType::text, 0, kMostText, "", "alias of content"},
       [](const Json& v, Tokenize& r) { r.text = v; }},
      {{"inputs", FieldType::texts, 1, 2048, "",
        "a text, or an array of texts; the response has the format of text-embeddings-inference"},
       [](const Json& v, Tokenize& r) { r.inputs = texts_of(v); }},
      {{"add_special_tokens", FieldType::boolean, 0, 0, "true", "add special tokens; of inputs"},
       [](const Json& v, Tokenize& r) { r.special_of_inputs = v; }},
      {{"add_special", FieldType::boolean, 0, 0, "false",
        "add special tokens at the beginning and the end, such as [CLS]"},
       [](const Json& v, Tokenize& r) { r.add_special = v; }},
      {{"parse_special", FieldType::boolean, 0, 0, "true",
        "parse names of special tokens in the text as special tokens"},
       [](const Json& v, Tokenize& r) { r.special = special_tokens(v); }},
      {{"with_pieces", FieldType::boolean, 0, 0, "false", "return each token's text with its id"},
       [](const Json& v, Tokenize& r) { r.with_pieces = v; }},
  };
  return all;
}

template <>
const Fields<DetokenizeRequest>& fields_of() {
  static const Fields<DetokenizeRequest> all = {
      model_field(),
      {{"tokens", FieldType::ids, 0, 1e6, "", "the token ids", true},
       [](const Json& v, DetokenizeRequest& r) { r.ids = v.get<std::vector<int32_t>>(); }},
      {{"skip_special_tokens", FieldType::boolean, 0, 0, "false", "skip special tokens"},
       [](const Json& v, DetokenizeRequest& r) { r.skip_special = v; }},
  };
  return all;
}

}  // namespace fovea::serve
