#pragma once

#include <string>

#include "fovea/plan.h"

namespace fovea::cli {

// Formats a plan as tables for people, or as one JSON object for programs.
std::string plan_text(const std::string& name, const Spec& spec, const Plan& plan,
                      const PlanOptions& options);
std::string plan_json(const std::string& name, const Spec& spec, const Plan& plan,
                      const PlanOptions& options);

}  // namespace fovea::cli
