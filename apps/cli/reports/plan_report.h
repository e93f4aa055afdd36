#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fovea/train/plan.h"

namespace fovea::cli {

// The memory of generation for each precision of the weights, the stored one first.
using InferencePlans = std::vector<std::pair<std::string, train::InferenceMemory>>;

// Formats a plan as tables for people, or as one JSON object for programs. `memory`: empty for a
// model without weights.
std::string plan_text(const std::string& name, const model::Spec& spec, const train::Plan& plan,
                      const train::PlanOptions& options, const InferencePlans& memory);
std::string plan_json(const std::string& name, const model::Spec& spec, const train::Plan& plan,
                      const train::PlanOptions& options, const InferencePlans& memory);
std::string budget_text(const train::BudgetPlan& plan);
std::string budget_json(const train::BudgetPlan& plan);

}  // namespace fovea::cli
