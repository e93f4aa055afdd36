#pragma once

#include <string>

#include "fovea/model/hub.h"
#include "options/options.h"

namespace fovea::cli {

// Returns the settings of the environment, with this machine's memory bandwidth.
model::HubSettings hub_settings();

// Fetches a model or a data set with a progress line, and returns its path.
std::string fetch(const model::HubPlan& plan, const model::HubSettings& settings);

// Fetches the models at the Hugging Face Hub that the given options name, and the bases of their
// adapters, after a question on the terminal. Throws UsageError if there is no terminal, unless
// `yes`, or if the answer is no.
void fetch_models(const OptionTable& table, bool yes);

// The same for one model or data set; does nothing if it is in the cache.
void fetch_if_missing(const model::HubName& name, bool yes);

// "Qwen/Qwen3-0.6B-GGUF: 639 MB in 1 file, licence apache-2.0"
std::string summary_of(const model::HubPlan& plan);

}  // namespace fovea::cli
