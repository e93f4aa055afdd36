#pragma once

#include <functional>
#include <vector>

#include "data/conversations.h"
#include "fovea/infer/generate.h"
#include "fovea/train/reinforcement.h"
#include "loop/conversation_text.h"
#include "loop/generate_answers.h"
#include "parallel/communicator.h"
#include "tasks/prompt_texts.h"

namespace fovea::train {

// An episode that has ended: the answers to a prompt, and what an environment replied to them.
struct PlayedEpisode {
  std::vector<int32_t> ids;      // after the prompt, with the end tokens of the answers
  std::vector<int32_t> replies;  // the replies in `ids`: begin, end, begin, end, ...
  infer::Generation answer;      // the last one
  int64_t answers = 1;
  double reward = 0;  // of the environment
};

// Plays episodes in which an environment replies to answers. The environment is on rank 0: its
// machine has the programs, and their replies may differ.
class EpisodePlayer {
 public:
  // Answers each prompt once. Collective.
  using Answer = std::function<std::vector<infer::Generation>(const std::vector<AnswerPrompt>&)>;

  // `ends`: the tokens that end an answer; `context`: the most tokens that the model reads.
  EpisodePlayer(const ReinforcementOptions& options, ConversationText text,
                std::vector<int32_t> ends, int64_t context, Communicator* ranks)
      : options_(options),
        text_(std::move(text)),
        ends_(std::move(ends)),
        context_(context),
        ranks_(ranks) {}

  struct Start {
    std::vector<const PromptText*> prompts = {};
    std::vector<uint64_t> seeds = {};  // of the prompts
    int64_t number = 0;                // of the first episode
    bool evaluation = false;
  };
  // Continues after the first answer in each episode, until all have ended; the same number of
  // episodes begins with each prompt. Collective.
  void play(const Start& start, std::vector<PlayedEpisode>& episodes, const Answer& answer) const;

 private:
  class Table;

  const ReinforcementOptions& options_;
  ConversationText text_;
  std::vector<int32_t> ends_;
  int64_t context_;
  Communicator* ranks_;
};

}  // namespace fovea::train
