#pragma once

#include <memory>

#include "serve/models/served_model.h"
#include "serve/request/api_error.h"

namespace fovea::serve {

// Routes of Hugging Face's tasks for parts of texts and for candidate labels. The model's worker
// answers the requests one after another. An array of inputs has an array of the results. Begin and
// end of a part count characters (code points). Throws ApiError for invalid inputs.

using ServedPtr = std::shared_ptr<ServedModel>;
using ExchangePtr = std::shared_ptr<http::Exchange>;

// /token-classification: [{"entity_group", "score", "word", "start", "end"}, ...]; without joining
// "entity" in place of "entity_group"
void serve_entities(const EntitiesRequest& request, const ServedPtr& model,
                    const ExchangePtr& exchange);
// /question-answering: {"answer", "score", "start", "end"}; for several results an array of these
void serve_answers(const AnswersRequest& request, const ServedPtr& model,
                   const ExchangePtr& exchange);
// /fill-mask: [{"score", "token", "token_str", "sequence"}, ...], best first; for several masks an
// array of these
void serve_masks(const MasksRequest& request, const ServedPtr& model, const ExchangePtr& exchange);
// /zero-shot-classification: [{"label", "score"}, ...], best first
void serve_candidates(const CandidatesRequest& request, const ServedPtr& model,
                      const ExchangePtr& exchange);

}  // namespace fovea::serve
