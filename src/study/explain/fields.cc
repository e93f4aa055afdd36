#include "fovea/study/explain.h"

namespace fovea::study {

void visit(ExplainOptions& o, OptionVisitor& v) {
  v.choice({"method",
            "how the output is attributed to tokens; all = every method that the model allows"},
           o.method, {"all", "gradient_input", "integrated_gradients", "rollout"});
  v.text({"target",
          "label or next token to explain: its name, or #ID of a token; unset: the most probable "
          "one"},
         o.target);
  v.choice({"baseline",
            "what replaces the tokens in the baseline of integrated gradients; automatic = padding "
            "or else mask, if the tokenizer has such a token, else zero"},
           o.baseline, {"automatic", "padding", "mask", "zero"});
  v.integer(
      {"integration_steps",
       "points between the baseline and the text; 0 = 64, doubled up to 1024 until the scores "
       "add up to the difference"},
      o.integration_steps, 0, 100'000);
  v.number({"removed_share",
            "share of the tokens that the deletion test removes, those with the greatest scores"},
           o.removed_share, 0.001, 1);
  v.integer({"random_choices", "number of random choices of tokens in the deletion test"},
            o.random_choices, 1, 100'000);
  v.seed({"seed", "seed of the random choices"}, o.seed);
}

const std::string& name_of(AttributionMethod method) {
  static const std::string kNames[] = {"gradient_input", "integrated_gradients", "rollout"};
  return kNames[static_cast<size_t>(method)];
}

}  // namespace fovea::study
