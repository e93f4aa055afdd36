// The fields of requests for labels of texts and for scores of pairs of texts.

#include "serve/request/api_error.h"
#include "serve/request/described_field.h"
#include "serve/request/field_values.h"

namespace fovea::serve {
namespace {

void put_input(const Json& value, ClassifyRequest& request) {
  for (std::string& text : texts_of(value)) request.inputs.push_back({std::move(text), {}});
}

// A text, a pair [text, text], or an array of [text] and [text, text], as in
// text-embeddings-inference.
void put_predict_inputs(const Json& value, PredictRequest& request) {
  const char* const kExpected = "a text, a pair of texts, or an array of [text] and [text, text]";
  const auto sequence = [&](const Json& texts) {
    const bool whole = texts.is_array() && (texts.size() == 1 || texts.size() == 2);
    for (size_t i = 0; whole && i < texts.size(); ++i)
      if (!texts[i].is_string()) refuse_value("inputs", kExpected, "invalid_type");
    if (!whole) refuse_value("inputs", kExpected, "invalid_type");
    infer::TextInput input{texts[0].get<std::string>(), {}};
    if (texts.size() == 2) input.pair = texts[1].get<std::string>();
    request.inputs.push_back(std::move(input));
  };
  if (value.is_array() && value.empty()) refuse_value("inputs", "at least one text", "empty");
  if (value.is_string()) return sequence(Json::array({value}));
  if (!value.is_array()) refuse_value("inputs", kExpected, "invalid_type");
  if (value[0].is_string()) return sequence(value);
  if (static_cast<double>(value.size()) > kMostInputs)
    refuse_value("inputs", "1 to 2048 texts", "out_of_range");
  request.many = true;
  for (const Json& texts : value) sequence(texts);
}

// An array of texts, or of objects with "text".
void put_documents(const Json& value, RankRequest& request) {
  for (const Json& document : value) {
    const auto text = document.is_object() ? document.find("text") : document.end();
    const Json& found = document.is_object() && text != document.end() ? *text : document;
    if (!found.is_string())
      refuse_value("documents", "an array of texts or of {\"text\": ...}", "invalid_type");
    request.documents.push_back(found.get<std::string>());
  }
  if (request.documents.empty()) refuse_value("documents", "at least one text", "empty");
}

}  // namespace

template <>
const Fields<ClassifyRequest>& fields_of() {
  static const Fields<ClassifyRequest> all = {
      model_field(),
      {{"input", FieldType::texts, 1, kMostInputs, "", "a text, or an array of texts", true},
       put_input},
      {{"use_activation", FieldType::boolean, 0, 0, "true",
        "return probabilities instead of raw scores"},
       [](const Json& v, ClassifyRequest& r) { r.options.raw = !v.get<bool>(); }},
  };
  return all;
}

template <>
const Fields<PredictRequest>& fields_of() {
  static const Fields<PredictRequest> all = {
      model_field(),
      {{"inputs", FieldType::any, 0, 0, "",
        "a text, a pair of texts, or an array of up to 2048 [text] and [text, text]", true},
       put_predict_inputs},
      described("raw_scores", &PredictRequest::options, "raw"),
      described("truncate", &PredictRequest::options, "truncate"),
      direction_field(),
  };
  return all;
}

template <>
const Fields<ScoreRequest>& fields_of() {
  static const Fields<ScoreRequest> all = {
      model_field(),
      {{"text_1", FieldType::texts, 1, kMostInputs, "", "a text, or as many texts as text_2 has",
        true},
       [](const Json& v, ScoreRequest& r) { r.first = texts_of(v); }},
      {{"text_2", FieldType::texts, 1, kMostInputs, "",
        "a text, or an array of texts to compare with text_1", true},
       [](const Json& v, ScoreRequest& r) { r.second = texts_of(v); }},
  };
  return all;
}

template <>
const Fields<RankRequest>& fields_of() {
  static const Fields<RankRequest> all = {
      model_field(),
      {{"query", FieldType::text, 0, kMostText, "", "the query", true},
       [](const Json& v, RankRequest& r) { r.query = v; }},
      {{"documents", FieldType::array, 0, kMostInputs, "",
        "texts to score, as strings or as objects with text", true},
       put_documents},
      {{"top_n", FieldType::integer, 0, 1e9, "0", "number of results; 0 = all"},
       [](const Json& v, RankRequest& r) { r.most_results = v; }},
      {{"return_documents", FieldType::boolean, 0, 0, "false", "return each text with its score"},
       [](const Json& v, RankRequest& r) { r.return_documents = v; }},
  };
  return all;
}

template <>
const Fields<SimilarityRequest>& fields_of() {
  static const Fields<SimilarityRequest> all = {
      model_field(),
      {{"inputs", FieldType::object, 0, 16, "", "the texts to compare", true},
       [](const Json&, SimilarityRequest&) {}},
      {{"inputs.source_sentence", FieldType::text, 1, kMostText, "",
        "the text that is compared with the others", true},
       [](const Json& v, SimilarityRequest& r) { r.text = v; }},
      {{"inputs.sentences", FieldType::strings, 1, kMostInputs, "", "the other texts", true},
       [](const Json& v, SimilarityRequest& r) { r.others = v.get<std::vector<std::string>>(); }},
  };
  return all;
}

}  // namespace fovea::serve
