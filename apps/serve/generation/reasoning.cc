#include "serve/generation/reasoning.h"

#include <algorithm>
#include <array>

#include "serve/request/foreign_fields.h"

namespace fovea::serve {
namespace {

// The variables of published templates: of Qwen, GLM and others, and of DeepSeek and Granite.
constexpr std::array kSwitches = {"enable_thinking", "thinking"};

struct Effort {
  const char* word;
  int64_t tokens;  // of reasoning, where the template has no variable; -1 = no limit
};
constexpr std::array<Effort, 7> kEfforts = {{{"none", 0},
                                             {"minimal", 512},
                                             {"low", 2048},
                                             {"medium", 8192},
                                             {"high", -1},
                                             {"xhigh", -1},
                                             {"max", -1}}};

bool template_has(const ServedModel& model, const char* variable) {
  const auto* const generator = model.find<TextGenerator>();
  return generator != nullptr && generator->chat &&
         generator->chat->source.find(variable) != std::string::npos;
}

bool reasons(const ServedModel& model) {
  const auto* const generator = model.find<TextGenerator>();
  return generator != nullptr && !generator->message.reasoning_end.empty();
}

}  // namespace

void switch_reasoning(bool on, const ServedModel& model, ChatRequest& request) {
  bool known = false;
  for (const char* variable : kSwitches) {
    known |= template_has(model, variable);
    if (!request.template_variables.contains(variable)) request.template_variables[variable] = on;
  }
  if (!known && reasons(model))
    request.warnings.emplace_back(
        "reasoning cannot be switched: the chat template has no variable for it");
}

bool is_effort(const std::string& word) {
  return std::ranges::count(kEfforts, word, &Effort::word) > 0;
}

void set_effort(const std::string& effort, const std::string& field, const ServedModel& model,
                ChatRequest& request) {
  const auto known = std::ranges::find(kEfforts, effort, &Effort::word);
  if (known == kEfforts.end())
    refuse_value(field, "none, minimal, low, medium, high, xhigh or max");
  if (!reasons(model) && !template_has(model, "reasoning_effort")) return;
  if (effort == "none" && reasons(model)) return switch_reasoning(false, model, request);
  if (template_has(model, "reasoning_effort")) {
    request.template_variables["reasoning_effort"] = effort;
  } else if (!request.reasoning_tokens && known->tokens >= 0) {
    request.reasoning_tokens = known->tokens;
  }
}

}  // namespace fovea::serve
