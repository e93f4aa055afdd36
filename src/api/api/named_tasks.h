#pragma once

#include <string>

#include "api/task_records.h"

namespace fovea {

// Tasks of lm-evaluation-harness with its prompts, on data sets of the Hugging Face Hub.

bool is_named_task(const std::string& name);

// Reads the records of a task from its data set in the cache of the Hub. Throws BadFile if it is
// not there, or a row is invalid.
TaskRecords read_named_task(const std::string& name);

}  // namespace fovea
