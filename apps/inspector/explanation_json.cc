#include "inspector/explanation_json.h"

namespace fovea::inspector {
namespace {

using Json = nlohmann::ordered_json;

Json attribution_json(const study::Attribution& attribution, const std::string& baseline) {
  Json result = {{"method", study::name_of(attribution.method)}, {"scores", attribution.scores}};
  if (attribution.baseline_value) {
    result["baseline"] = baseline;
    result["baseline_value"] = *attribution.baseline_value;
    result["completeness_error"] = *attribution.completeness_error;
    result["integration_steps"] = attribution.integration_steps;
    result["converged"] = attribution.converged;
  }
  const std::optional<study::DeletionTest>& deletion = attribution.deletion;
  result["deletion"] = deletion ? Json({{"removed", deletion->removed},
                                        {"change", deletion->change},
                                        {"random_change", deletion->random_change},
                                        {"random_deviation", deletion->random_deviation}})
                                : Json();
  return result;
}

}  // namespace

Json tokens_json(const std::vector<study::InspectedToken>& tokens) {
  Json all = Json::array();
  for (const study::InspectedToken& token : tokens)
    all.push_back({{"id", token.id}, {"text", token.text}, {"special", token.special}});
  return all;
}

Json explanation_json(const study::Explanation& explanation) {
  Json outputs = Json::array(), attributions = Json::array();
  for (const study::ScoredOutput& output : explanation.outputs) {
    Json& one = outputs.emplace_back(Json({{"name", output.name}, {"score", output.score}}));
    if (output.id) one["id"] = *output.id;
  }
  for (const study::Attribution& attribution : explanation.attributions)
    attributions.push_back(attribution_json(attribution, explanation.baseline));
  return {{"target", explanation.target},
          {"value_name", explanation.value_name},
          {"value", explanation.value},
          {"outputs", outputs},
          {"cut", explanation.cut},
          {"tokens", tokens_json(explanation.tokens)},
          {"positions", explanation.positions},
          {"attributions", attributions}};
}

}  // namespace fovea::inspector
