#pragma once

#include "serve/served_model.h"

namespace fovea::serve {

// What a request asked to see of the model, for the tokens of one choice.
class WatchedList {
 public:
  // `prompt`: the tokens in front of the answer; one below 0 has no text.
  WatchedList(const Watch& watch, std::optional<Tokenizer> tokenizer, std::vector<int32_t> prompt);
  void add(int32_t id, const Watched& watched);
  Json take();  // "fovea" of a choice; null where there is nothing. The list is empty then.

 private:
  std::string text(int32_t id) const;
  Json keys_of(const Watched& watched) const;

  Watch watch_;
  std::optional<Tokenizer> tokenizer_;
  std::vector<int32_t> ids_;  // prompt and answer
  Json attention_ = Json::array(), hidden_ = Json::array();
};

}  // namespace fovea::serve
