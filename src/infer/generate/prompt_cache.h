#pragma once

#include "generate/scheduler.h"

namespace fovea::infer {

// Gives the scheduler the pages that the file and the prompt have in common, if the file exists.
void load_prompt(const PromptCache& cache, const model::Spec& spec,
                 const std::vector<int32_t>& prompt, Scheduler& scheduler);
// Writes the full pages of the prompt, unless the file has them.
void save_prompt(const PromptCache& cache, const std::vector<int32_t>& prompt,
                 Scheduler& scheduler);

}  // namespace fovea::infer
