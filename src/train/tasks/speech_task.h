#pragma once

#include "data/recordings.h"
#include "generate/generate.h"
#include "metrics/predictions.h"
#include "parallel/communicator.h"

namespace fovea::train {

// Transcribes recordings and adds the texts with their references to the predictions. `advance` is
// called with the number of recordings that are done; it returns false to stop. `ranks`: as in
// shared_evaluation.h.
void add_transcripts(const infer::Generator& generator, const model::Origin& origin,
                     const std::vector<int32_t>& end_ids, const Recordings& recordings,
                     int64_t beams, const std::function<bool(int64_t done)>& advance,
                     Communicator* ranks, infer::Predictions& found);

}  // namespace fovea::train
