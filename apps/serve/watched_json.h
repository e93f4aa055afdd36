#pragma once

#include "serve/served_model.h"

namespace fovea::serve {

// What a request asked to see of the model, for the tokens of one choice.
class WatchedList {
 public:
  // `prompt`: the tokens in front of the answer; one below 0 has no text.
  WatchedList(const Watch& watch, std::optional<Tokenizer> tokenizer,
              const std::vector<int32_t>& prompt);
  void add(int32_t id, const Watched& watched);
  size_t bytes() const { return attention_.size() + hidden_.size(); }
  // "fovea" of a choice as JSON; empty where there is nothing. The list is empty then.
  std::string take();

 private:
  std::string text(int32_t id) const;

  Watch watch_;
  std::optional<Tokenizer> tokenizer_;
  std::vector<int32_t> ids_;        // prompt and answer
  std::string attention_, hidden_;  // the entries of JSON arrays
};

}  // namespace fovea::serve
