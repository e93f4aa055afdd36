#pragma once

#include <string>
#include <vector>

#include "serve/request/fields.h"

namespace fovea::serve {

// What the tables of fields share.

constexpr double kMostText = 1e9;     // bytes of a text; the limit of the body's size applies first
constexpr double kMostInputs = 2048;  // texts of a request

inline Field<ModelRequest> model_field() {
  return {{"model", FieldType::text, 0, 1024, "the first capable model",
           "name of the model, as listed by GET /v1/models"},
          [](const Json& v, ModelRequest& r) { r.model = v; }};
}

// The field truncation_direction of text-embeddings-inference, which must be right.
Field<ModelRequest> direction_field();

// Returns `field` with other bounds. `note` is appended to its help.
template <class Request>
Field<Request> bounded(double least, double most, Field<Request> field, const char* note = "") {
  field.info.least = least;
  field.info.most = most;
  field.info.help += note;
  return field;
}

// Returns the fields in this order; `shared` are those of a base.
template <class Request, class Base>
Fields<Request> joined(Fields<Request> first, const Fields<Base>& shared,
                       const Fields<Request>& last) {
  first.insert(first.end(), shared.begin(), shared.end());
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

// The values of fields of the types texts and prompts.
std::vector<std::string> texts_of(const Json& value);
std::vector<Prompt> prompts_of(const Json& value);

inline text::SpecialTokens special_tokens(bool parsed) {
  return parsed ? text::SpecialTokens::parsed : text::SpecialTokens::as_text;
}

}  // namespace fovea::serve
