#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fovea/plan.h"

namespace fovea::cli {

// The memory of generation for each precision of the weights, the stored one first.
using InferencePlans = std::vector<std::pair<std::string, InferenceMemory>>;

// Formats a plan as tables for people, or as one JSON object for programs. `memory`: empty for a
// model without weights.
std::string plan_text(const std::string& name, const Spec& spec, const Plan& plan,
                      const PlanOptions& options, const InferencePlans& memory);
std::string plan_json(const std::string& name, const Spec& spec, const Plan& plan,
                      const PlanOptions& options, const InferencePlans& memory);
std::string budget_text(const BudgetPlan& plan);
std::string budget_json(const BudgetPlan& plan);

}  // namespace fovea::cli
