#include "serve/protocols/beam_tree_json.h"

namespace fovea::serve {

nlohmann::ordered_json beam_tree_json(const infer::BeamTree& tree,
                                      const text::Tokenizer& tokenizer) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const infer::BeamNode& node : tree)
    nodes.push_back({{"parent", node.parent},
                     {"step", node.step},
                     {"id", node.id},
                     {"token", node.id < tokenizer.size() ? tokenizer.bytes_of(node.id) : ""},
                     {"logprob", node.logprob},
                     {"score", node.score},
                     {"fate", infer::name_of(node.fate)}});
  return nodes;
}

}  // namespace fovea::serve
