#pragma once

#include <string>

#include "lab/lab.h"

namespace fovea::lab {

// Returns the text of result.json, which judge_result() reads.
std::string result_text(const LabResult& result);

}  // namespace fovea::lab
