#pragma once

#include "serve/served_model.h"

namespace fovea::serve {

// The attention weights and hidden states that a request asked for, for the tokens of one choice.
class AttentionTraceList {
 public:
  // `prompt`: the tokens before the answer; an id below 0 has no text.
  AttentionTraceList(const AttentionTraceOptions& trace, std::optional<Tokenizer> tokenizer,
                     const std::vector<int32_t>& prompt);
  void add(int32_t id, const AttentionTrace& trace);
  size_t bytes() const { return attention_.size() + hidden_.size(); }
  // The field "fovea" of a choice as JSON, or empty. Clears the list.
  std::string take();

 private:
  std::string text(int32_t id) const;

  AttentionTraceOptions trace_options_;
  std::optional<Tokenizer> tokenizer_;
  std::vector<int32_t> ids_;        // prompt and answer
  std::string attention_, hidden_;  // the entries of JSON arrays
};

}  // namespace fovea::serve
