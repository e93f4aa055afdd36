#include "explain/explained.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/fields.h"
#include "classify/classifier_parts.h"
#include "explain/deletion.h"
#include "explain/gradients.h"
#include "explain/rollout.h"
#include "fovea/core/excerpt.h"
#include "inspect/token_texts.h"

namespace fovea::study {
namespace {

BaselineToken baseline_of(const text::Tokenizer* tokenizer, const model::Spec& spec,
                          IntegrationBaseline kind) {
  const auto find = [&](const char* key, std::initializer_list<const char*> names) {
    const auto id =
        tokenizer != nullptr ? infer::special_token(*tokenizer, key, names) : std::nullopt;
    return id && *id < spec.vocabulary ? id : std::nullopt;
  };
  const auto padding = find("pad_token", {"[PAD]", "<pad>"});
  const auto mask = find("mask_token", {"[MASK]", "<mask>"});
  const bool automatic = kind == IntegrationBaseline::automatic;
  check_field(kind != IntegrationBaseline::padding || padding, "baseline",
              "padding: the tokenizer has no padding token; expected mask or zero");
  check_field(kind != IntegrationBaseline::mask || mask, "baseline",
              "mask: the tokenizer has no mask token; expected padding or zero");
  if (padding && (automatic || kind == IntegrationBaseline::padding)) return {"padding", padding};
  if (mask && (automatic || kind == IntegrationBaseline::mask)) return {"mask", mask};
  return {"zero", std::nullopt};
}

std::vector<AttributionMethod> methods_of(AttributionMethods method,
                                          const model::Transformer& model) {
  std::vector<AttributionMethod> methods;
  for (const auto& [one, other] :
       {std::pair(AttributionMethods::gradient_input, AttributionMethod::gradient_input),
        {AttributionMethods::integrated_gradients, AttributionMethod::integrated_gradients},
        {AttributionMethods::rollout, AttributionMethod::rollout}})
    if (method == one || method == AttributionMethods::all) methods.push_back(other);
  if (method == AttributionMethods::rollout) check_rollout(model);
  if (!has_rollout(model)) std::erase(methods, AttributionMethod::rollout);
  return methods;
}

// Integrates with the given number of points, or with as many as the result needs to converge.
void integrate(const ExplainedOutput& output, const ExplainedText& text, double value,
               const ExplainSettings& settings, Attribution& result) {
  constexpr int64_t kFirst = 64, kMost = 1024;
  constexpr double kShare = 0.02, kFloor = 1e-3;
  const int64_t given = settings.options.integration_steps;
  for (int64_t steps = given > 0 ? given : kFirst;; steps *= 2) {
    IntegratedGradients found = integrated_gradients(output, text, settings.baseline.id, steps);
    const double sum = std::accumulate(found.scores.begin(), found.scores.end(), 0.0),
                 difference = value - found.baseline_value, error = std::abs(sum - difference);
    result.scores = std::move(found.scores);
    result.baseline_value = found.baseline_value;
    result.completeness_error = error;
    result.integration_steps = steps;
    result.converged = error <= std::max(kShare * std::abs(difference), kFloor);
    if (given > 0 || result.converged || steps >= kMost) return;
  }
}

Attribution attribution_of(AttributionMethod method, const ExplainedOutput& output,
                           const ExplainedText& text, double value,
                           const ExplainSettings& settings) {
  Attribution result;
  result.method = method;
  switch (method) {
    case AttributionMethod::gradient_input: result.scores = gradient_input(output, text); break;
    case AttributionMethod::rollout: result.scores = rollout(output, text); break;
    case AttributionMethod::integrated_gradients: integrate(output, text, value, settings, result);
  }
  return result;
}

}  // namespace

ExplainSettings::ExplainSettings(const ExplainOptions& given, const text::Tokenizer* known,
                                 const model::Transformer& model)
    : options(given),
      tokenizer(known),
      baseline(baseline_of(known, model.spec, given.baseline)),
      methods(methods_of(given.method, model)) {}

Explanation explained(const ExplainedOutput& output, const ExplainedText& text,
                      const ExplainSettings& settings) {
  Explanation result;
  result.tokens = display_tokens(settings.tokenizer, text.tokens.ids);
  for (size_t t = 0; t < result.tokens.size(); ++t) result.tokens[t].special = text.own[t] == 0;
  result.cut = text.tokens.cut;
  result.positions = text.positions;
  result.value = values_of(output, {text})[0];
  result.baseline = settings.baseline.name;
  if (settings.methods.empty()) return result;
  const DeletionTests tests(output, text, result.value, settings.options);
  for (const AttributionMethod method : settings.methods) {
    Attribution attribution = attribution_of(method, output, text, result.value, settings);
    attribution.deletion = tests.of(attribution.scores);
    result.attributions.push_back(std::move(attribution));
  }
  return result;
}

ExplainedText explained_text(infer::TokenizedText tokens, const text::Tokenizer* tokenizer,
                             int64_t prompt) {
  ExplainedText text{std::move(tokens), {}};
  for (int64_t t = 0; t < text.length(); ++t) {
    const int32_t id = text.tokens.ids[static_cast<size_t>(t)];
    const bool added =
        tokenizer != nullptr && tokenizer->is_special(id) && tokenizer->unknown_id() != id;
    text.own.push_back(added || t < prompt ? 0 : 1);
  }
  return text;
}

std::vector<std::string> single_texts(const std::vector<infer::TextInput>& texts,
                                      const infer::ClassifyOptions& options) {
  std::vector<std::string> list;
  for (const infer::TextInput& text : texts) {
    check(!text.pair, "{}: has two texts; expected one", infer::name_of_text(options, list.size()));
    list.push_back(text.text);
  }
  return list;
}

size_t label_named(const std::vector<std::string>& labels, const std::string& name) {
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] == name) return i;
  fail_field(ErrorKind::InvalidArgument, "target",
             "\"{}\" is not a label of the model; expected one of {}", excerpt(name),
             excerpt(fmt::format("{}", fmt::join(labels, ", "))));
}

}  // namespace fovea::study
