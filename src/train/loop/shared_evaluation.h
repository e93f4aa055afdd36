#pragma once

// Evaluations that the processes (ranks) of a job share. Each rank gets all results, with the bits
// of one process. All functions are collective; `ranks` null = this process alone.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fovea/infer/generate.h"
#include "metrics/predictions.h"
#include "parallel/communicator.h"

namespace fovea::train {

// Returns the predictions for the batches 0 to count - 1, in their order. Those for a batch have
// the sum of its losses as their loss, and ends that count its own choices; the result has the mean
// loss.
infer::Predictions predict_batches(Communicator* ranks, int64_t count,
                                   const std::function<infer::Predictions(int64_t n)>& of_batch);

// Returns the answers to the prompts 0 to count - 1, `each` to each of them: their ids, texts and
// end tokens. make() returns those to prompts [begin, end).
std::vector<infer::Generation> share_answers(
    Communicator* ranks, int64_t count, int64_t each,
    const std::function<std::vector<infer::Generation>(int64_t begin, int64_t end)>& make);

// Returns the texts 0 to count - 1; make() returns texts [begin, end).
std::vector<std::string> share_texts(
    Communicator* ranks, int64_t count,
    const std::function<std::vector<std::string>(int64_t begin, int64_t end)>& make);

}  // namespace fovea::train
