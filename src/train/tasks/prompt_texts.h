#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/conversations.h"
#include "fovea/text/chat.h"
#include "fovea/text/tokenizer.h"
#include "loop/job.h"

namespace fovea::train {

// A prompt and its tokens: those before the answer, or of an encoder-decoder the encoder's input.
struct PromptText {
  Prompt prompt;
  std::vector<int32_t> ids;
};

struct PromptTexts {
  std::vector<PromptText> training, held_out;
  std::vector<WeightedGroup> groups;  // of `training`, by file
  int64_t longest = 0;                // tokens of the longest prompt

  // Returns the tokens of the training prompts in an epoch.
  int64_t tokens() const;
};

// Converts prompts to tokens. Without `validation`, evenly spaced ones are held out, a part `share`
// of all. Those that leave no room for an answer in the context are skipped and reported by `say`.
// `chat`: the chat template; unset if the model has none. Throws BadFile if none are left for
// training, and InvalidArgument if a prompt does not suit the model.
PromptTexts prompt_texts(Prompts data, Prompts validation, double share, const model::Spec& spec,
                         const std::optional<text::ModelChat>& chat,
                         const text::Tokenizer& tokenizer, const Say& say);

}  // namespace fovea::train
