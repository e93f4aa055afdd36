#pragma once

#include <string>

#include "fovea/plan.h"

namespace fovea::cli {

// Formats a plan as tables for people, or as one JSON object for programs. `stored`: the weights of
// a .gguf file in its own types; empty for other models.
std::string plan_text(const std::string& name, const Spec& spec, const Plan& plan,
                      const PlanOptions& options, const std::vector<FormatBytes>& stored);
std::string plan_json(const std::string& name, const Spec& spec, const Plan& plan,
                      const PlanOptions& options, const std::vector<FormatBytes>& stored);

}  // namespace fovea::cli
