// The fields of requests for entities, answers, masked words and candidate labels.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "serve/request/api_error.h"
#include "serve/request/described_field.h"
#include "serve/request/field_values.h"

namespace fovea::serve {
namespace {

constexpr double kMostResults = 1000;  // of a mask or a question

// A parameter of transformers' pipelines that has one supported value.
struct FixedParameter {
  const char* name;
  Json value;
};

// The object "parameters", which has the members that follow it in the table of fields. Another
// member would change the result, so it is refused. `required`: what is expected, if it is
// required.
template <class Request>
Field<Request> parameters_field(std::vector<std::string> known,
                                std::vector<FixedParameter> fixed = {},
                                const char* required = nullptr) {
  const auto check = [known = std::move(known), fixed = std::move(fixed)](const Json& value,
                                                                          Request&) {
    for (const auto& [key, given] : value.items()) {
      if (given.is_null() || std::find(known.begin(), known.end(), key) != known.end()) continue;
      const auto found = std::find_if(fixed.begin(), fixed.end(),
                                      [&](const FixedParameter& each) { return each.name == key; });
      if (found == fixed.end())
        refuse_value("parameters." + key, fmt::format("{}", fmt::join(known, ", ")),
                     "unknown_field");
      if (given != found->value)
        refuse_value("parameters." + key, found->value.dump(), "invalid_value");
    }
  };
  return {{"parameters", FieldType::object, 0, 32, "",
           required != nullptr ? required : "options of the task", required != nullptr},
          check};
}

template <class Request>
Field<Request> texts_field() {
  return {{"inputs", FieldType::texts, 1, kMostInputs, "", "a text, or an array of texts", true},
          [](const Json& value, Request& request) {
            request.texts = texts_of(value);
            request.many = value.is_array();
          }};
}

void put_questions(const Json& value, AnswersRequest& request) {
  const auto one = [&](const Json& question) {
    const auto text = [&](const char* key) {
      const auto found = question.is_object() ? question.find(key) : question.end();
      if (!question.is_object() || found == question.end() || !found->is_string())
        refuse_value("inputs", "{\"question\", \"context\"}, or an array of these", "invalid_type");
      return found->template get<std::string>();
    };
    request.questions.push_back({text("question"), text("context")});
  };
  request.many = value.is_array();
  if (!request.many) return one(value);
  if (value.empty() || static_cast<double>(value.size()) > kMostInputs)
    refuse_value("inputs", "1 to 2048 questions", "out_of_range");
  for (const Json& question : value) one(question);
}

// An array of labels, or a text of labels with commas between them.
void put_candidates(const Json& value, CandidatesRequest& request) {
  std::vector<std::string>& labels = request.options.labels;
  if (value.is_array()) {
    labels = texts_of(value);
  } else {
    const std::string all = value.get<std::string>();
    for (size_t begin = 0; begin <= all.size();) {
      const size_t end = std::min(all.find(',', begin), all.size());
      const size_t first = std::min(all.find_first_not_of(' ', begin), end);
      size_t last = end;
      while (last > first && all[last - 1] == ' ') --last;
      labels.push_back(all.substr(first, last - first));
      begin = end + 1;
    }
  }
  if (std::find(labels.begin(), labels.end(), "") != labels.end())
    refuse_value("parameters.candidate_labels", "at least one character in each label", "empty");
}

}  // namespace

template <>
const Fields<EntitiesRequest>& fields_of() {
  static const Fields<EntitiesRequest> all = {
      model_field(),
      texts_field<EntitiesRequest>(),
      parameters_field<EntitiesRequest>({"aggregation_strategy", "stride"},
                                        {{"ignore_labels", Json::array({"O"})}}),
      {{"parameters.aggregation_strategy", FieldType::text, 1, 16, "simple",
        "how labels of tokens become entities: none, simple, first, average, max, or words"},
       [](const Json& v, EntitiesRequest& r) {
         static const std::vector<std::string> names = {"none",    "simple", "first",
                                                        "average", "max",    "words"};
         const auto found = std::find(names.begin(), names.end(), v.get<std::string>());
         if (found == names.end())
           refuse_value("parameters.aggregation_strategy",
                        fmt::format("{}", fmt::join(names, ", ")), "invalid_value");
         r.options.joining = static_cast<infer::EntityJoining>(found - names.begin());
       }},
      described("parameters.stride", &EntitiesRequest::options, "overlap"),
  };
  return all;
}

template <>
const Fields<AnswersRequest>& fields_of() {
  static const Fields<AnswersRequest> all = {
      model_field(),
      {{"inputs", FieldType::any, 0, 0, "", "{\"question\", \"context\"}, or an array of these",
        true},
       put_questions},
      parameters_field<AnswersRequest>(
          {"top_k", "doc_stride", "handle_impossible_answer", "max_answer_len", "max_seq_len"},
          {{"align_to_words", true}}),
      bounded(1, kMostResults, described("parameters.top_k", &AnswersRequest::options, "top", "1")),
      described("parameters.doc_stride", &AnswersRequest::options, "overlap"),
      described("parameters.handle_impossible_answer", &AnswersRequest::options, "null_answer"),
      described("parameters.max_answer_len", &AnswersRequest::options, "answer_tokens"),
      described("parameters.max_seq_len", &AnswersRequest::options, "window"),
  };
  return all;
}

template <>
const Fields<MasksRequest>& fields_of() {
  static const Fields<MasksRequest> all = {
      model_field(),
      texts_field<MasksRequest>(),
      parameters_field<MasksRequest>({"top_k"}),
      bounded(1, kMostResults, described("parameters.top_k", &MasksRequest::options, "top", "5")),
  };
  return all;
}

template <>
const Fields<CandidatesRequest>& fields_of() {
  static const Fields<CandidatesRequest> all = {
      model_field(),
      texts_field<CandidatesRequest>(),
      parameters_field<CandidatesRequest>(
          {"candidate_labels", "hypothesis_template", "multi_label"}, {},
          "an object with candidate_labels"),
      {{"parameters.candidate_labels", FieldType::texts, 1, kMostResults, "",
        "the labels, as an array or with commas between them", true},
       put_candidates},
      bounded(
          1, kMostText,
          described("parameters.hypothesis_template", &CandidatesRequest::options, "hypothesis")),
      described("parameters.multi_label", &CandidatesRequest::options, "multi_label"),
  };
  return all;
}

}  // namespace fovea::serve
