#pragma once

#include <nlohmann/json.hpp>

#include "fovea/study/explain.h"

namespace fovea::inspector {

// Returns the response to `request`, which asks for an explanation: that of result number "result"
// (default: 0), and the list "results" of all that the model finds in the text, each {"target",
// "text"}. "context" is the text that has the answer to a question. The other keys are the fields
// of ExplainOptions. Throws InvalidArgument, naming the field, if a value has another type or is
// out of range; the sizes of a request are limited further than those of the options.
nlohmann::ordered_json explain_request(const model::Model& model, study::InspectInput input,
                                       const nlohmann::ordered_json& request);

}  // namespace fovea::inspector
