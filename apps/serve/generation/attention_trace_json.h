#pragma once

#include "serve/models/served_model.h"

namespace fovea::serve {

// Collects the requested attention weights and hidden states of the tokens of one choice.
class AttentionTraceList {
 public:
  // `prompt`: the tokens before the generated ones. Negative ids have an empty text.
  AttentionTraceList(const infer::AttentionTraceOptions& trace,
                     std::optional<text::Tokenizer> tokenizer, const std::vector<int32_t>& prompt);
  void add(int32_t id, const infer::AttentionTrace& trace);
  size_t bytes() const { return attention_.size() + hidden_.size(); }
  // Returns the value of "fovea" in a choice as JSON, empty if there is none, and clears the list.
  std::string take();

 private:
  std::string text(int32_t id) const;

  infer::AttentionTraceOptions trace_options_;
  std::optional<text::Tokenizer> tokenizer_;
  std::vector<int32_t> ids_;        // token ids of the prompt and the generated text
  std::string attention_, hidden_;  // elements of JSON arrays
};

}  // namespace fovea::serve
