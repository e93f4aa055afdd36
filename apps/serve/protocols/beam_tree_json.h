#pragma once

#include <nlohmann/json.hpp>

#include "fovea/infer/beam_tree.h"
#include "fovea/text/tokenizer.h"

namespace fovea::serve {

// Returns the tree of a beam search as a list of {"parent", "step", "id", "token", "logprob",
// "score", "fate"}, as `fovea translate --beam-tree --json` and the server return it.
nlohmann::ordered_json beam_tree_json(const infer::BeamTree& tree,
                                      const text::Tokenizer& tokenizer);

}  // namespace fovea::serve
