#pragma once

// A run on several processes (ranks): rank 0 leads. It reads and prepares first, evaluates, decides
// and writes all files; the others compute their share of each step, on weights that stay equal.

#include <nlohmann/json.hpp>

#include "loop/job.h"
#include "parallel/communicator.h"

namespace fovea::train {

inline bool leads(const Communicator* ranks) { return ranks == nullptr || ranks->rank() == 0; }

// Collective. Returns the value of rank 0; other ranks ignore their own. Numbers keep their bits.
nlohmann::json of_leader(Communicator& ranks, const nlohmann::json& own);

// Collective; call it before the job is prepared. If the CPUs of the ranks compute different bits
// in bf16, makes all use the same instructions, and says so. Returns whether all multiply bf16
// natively.
bool agree_on_bits(Communicator& ranks, const Say& say);

// Collective; call it when the job is prepared on every rank. Throws InvalidArgument on a rank
// whose version, data, options or snapshot differ from those of rank 0.
void agree_on_job(Communicator& ranks, const Job& job);

}  // namespace fovea::train
