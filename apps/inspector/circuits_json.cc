#include "inspector/circuits_json.h"

namespace fovea::inspector {
namespace {

using Json = nlohmann::ordered_json;

Json values_json(const std::vector<study::TokenValue>& tokens) {
  Json list = Json::array();
  for (const study::TokenValue& token : tokens) list.push_back({token.id, token.value});
  return list;
}

Json lists_json(const std::vector<std::vector<study::TokenValue>>& lists) {
  Json all = Json::array();
  for (const auto& list : lists) all.push_back(values_json(list));
  return all;
}

}  // namespace

Json neurons_json(const std::vector<std::vector<study::Neuron>>& layers) {
  Json all = Json::array();
  for (const auto& layer : layers) {
    Json& neurons = all.emplace_back(Json::array());
    for (const study::Neuron& each : layer)
      neurons.push_back({{"neuron", each.neuron},
                         {"activation", each.activation},
                         {"promoted", values_json(each.promoted)}});
  }
  return all;
}

Json logit_attribution_json(const study::LogitAttribution& a) {
  return {{"difference", a.difference},
          {"embedding", a.embedding},
          {"biases", a.biases},
          {"heads", a.heads},
          {"recurrence", a.recurrence},
          {"cross", a.cross},
          {"feed_forward", a.feed_forward}};
}

Json patched_json(const study::PatchedDifferences& d) {
  return {{"into", d.into}, {"from", d.from}, {"patched", d.patched}};
}

Json circuit_json(const study::HeadCircuit& circuit) {
  return {{"scores", circuit.scores},
          {"sought", lists_json(circuit.sought)},
          {"written", lists_json(circuit.written)}};
}

Json rotary_json(const study::RotaryAngles& angles) {
  return {{"pairs", angles.pairs},
          {"halves", angles.halves},
          {"cosines", angles.cosines},
          {"sines", angles.sines}};
}

}  // namespace fovea::inspector
