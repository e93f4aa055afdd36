// The fields of requests for labels of texts and for scores of pairs of texts.

#include "serve/described_field.h"

namespace fovea::serve {
namespace {

constexpr double kMostInputs = 2048,
                 kLongestText = 1e9;  // the limit of the body's size applies first

[[noreturn]] void refuse_value(const std::string& name, const std::string& expected,
                               const char* code = "invalid_type") {
  throw ApiError{400, name + ": expected " + expected, name, code};
}

std::vector<std::string> one_or_more(const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  return value.get<std::vector<std::string>>();
}

void put_input(const Json& value, ApiRequest& request) {
  for (std::string& text : one_or_more(value)) request.pairs.push_back({std::move(text), {}});
}

// A text, a pair [text, text], or an array of [text] and [text, text], as in
// text-embeddings-inference.
void put_predict_inputs(const Json& value, ApiRequest& request) {
  const char* const kExpected = "a text, a pair of texts, or an array of [text] and [text, text]";
  const auto sequence = [&](const Json& texts) {
    const bool whole = texts.is_array() && (texts.size() == 1 || texts.size() == 2);
    for (size_t i = 0; whole && i < texts.size(); ++i)
      if (!texts[i].is_string()) refuse_value("inputs", kExpected);
    if (!whole) refuse_value("inputs", kExpected);
    infer::TextInput input{texts[0].get<std::string>(), {}};
    if (texts.size() == 2) input.pair = texts[1].get<std::string>();
    request.pairs.push_back(std::move(input));
  };
  if (value.is_array() && value.empty()) refuse_value("inputs", "at least one text", "empty");
  if (value.is_string()) return sequence(Json::array({value}));
  if (!value.is_array()) refuse_value("inputs", kExpected);
  if (value[0].is_string()) return sequence(value);
  if (static_cast<double>(value.size()) > kMostInputs)
    refuse_value("inputs", "1 to 2048 texts", "out_of_range");
  request.many = true;
  for (const Json& texts : value) sequence(texts);
}

// An array of texts, or of objects with "text".
void put_documents(const Json& value, ApiRequest& request) {
  for (const Json& document : value) {
    const auto text = document.is_object() ? document.find("text") : document.end();
    const Json& found = document.is_object() && text != document.end() ? *text : document;
    if (!found.is_string()) refuse_value("documents", "an array of texts or of {\"text\": ...}");
    request.texts.push_back(found.get<std::string>());
  }
  if (request.texts.empty()) refuse_value("documents", "at least one text", "empty");
}

}  // namespace

std::vector<Field> classification_fields() {
  return {
      {"input", kClassify, FieldType::texts, 1, kMostInputs, "", "a text, or an array of texts",
       put_input, true},
      {"use_activation", kClassify, FieldType::boolean, 0, 0, "true",
       "return probabilities instead of raw scores",
       [](const Json& v, ApiRequest& r) { r.classification.raw = !v.get<bool>(); }},
      {"inputs", kPredict, FieldType::any, 0, 0, "",
       "a text, a pair of texts, or an array of up to 2048 [text] and [text, text]",
       put_predict_inputs, true},
      described("raw_scores", kPredict, &ApiRequest::classification, "raw", ""),
      {"text_1", kScore, FieldType::texts, 1, kMostInputs, "",
       "a text, or as many texts as text_2 has",
       [](const Json& v, ApiRequest& r) { r.first_texts = one_or_more(v); }, true},
      {"text_2", kScore, FieldType::texts, 1, kMostInputs, "",
       "a text, or an array of texts to compare with text_1",
       [](const Json& v, ApiRequest& r) { r.second_texts = one_or_more(v); }, true},
      {"query", kRanks, FieldType::text, 0, kLongestText, "", "the query",
       [](const Json& v, ApiRequest& r) { r.query = v; }, true},
      {"documents", kRanks, FieldType::array, 0, kMostInputs, "",
       "texts to score, as strings or as objects with text", put_documents, true},
      {"top_n", kRanks, FieldType::integer, 0, 1e9, "0", "number of results; 0 = all",
       [](const Json& v, ApiRequest& r) { r.most_results = v; }},
      {"return_documents", kRanks, FieldType::boolean, 0, 0, "false",
       "return each text with its score", [](const Json& v, ApiRequest& r) { r.return_text = v; }},
      {"inputs", kSimilarity, FieldType::object, 0, 16, "", "the texts to compare",
       [](const Json&, ApiRequest&) {}, true},
      {"inputs.source_sentence", kSimilarity, FieldType::text, 1, kLongestText, "",
       "the text that is compared with the others",
       [](const Json& v, ApiRequest& r) { r.query = v; }, true},
      {"inputs.sentences", kSimilarity, FieldType::strings, 1, kMostInputs, "", "the other texts",
       [](const Json& v, ApiRequest& r) { r.texts = v.get<std::vector<std::string>>(); }, true},
  };
}

}  // namespace fovea::serve
