#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/ordered_json.h"
#include "serve/models/served_model.h"

namespace fovea::serve {

struct TokenCounts {
  int64_t prompt = 0, cached = 0, generated = 0;
  int64_t reasoning = 0;  // of the generated ones
  Json json() const;      // the value of "usage"
};

// Formats of the log-probabilities of tokens: those of OpenAI's API, the list alone, and the list
// of the tokens of content alone.
enum class LogprobStyle { chat, completion, list, content };

// The log-probabilities of the tokens of one choice. Kept as text, since a tree of JSON values
// would take five times the memory.
class LogprobList {
 public:
  LogprobList(std::optional<text::Tokenizer> tokenizer, LogprobStyle style);
  void add(int32_t id, const infer::TokenLogprob& logprob);
  void add_first(int32_t id);  // the first token of a prompt, which has no log-probability
  bool empty() const { return tokens_.empty(); }
  size_t bytes() const { return tokens_.size() + logprobs_.size() + top_.size() + offsets_.size(); }
  void settle(bool keeps);  // keeps or drops the tokens added since the last call
  std::string take();       // returns the JSON ("null" if the list is empty) and clears the list

 private:
  std::string text(int32_t id) const;
  // Returns an entry in the chat format, without the closing brace.
  std::string entry(int32_t id, float logprob) const;

  std::optional<text::Tokenizer> tokenizer_;
  LogprobStyle style_;
  size_t offset_ = 0;   // in characters of the text
  size_t settled_ = 0;  // bytes of tokens_
  std::string tokens_, logprobs_, top_,
      offsets_;  // contents of JSON arrays; only the first is used by chats
};

// Returns the number as JSON text: "null" for NaN and infinity, which JSON lacks.
std::string json_number(float number);
// Members of an object whose values are already JSON text, so that large ones are never parsed.
using Members = std::vector<std::pair<const char*, std::string>>;
std::string json_object(const Json& object, const Members& members);
// "data: ...\n\n"
std::string sse_event(const std::string& data);

Json timings_json(const infer::Generation& generation);

}  // namespace fovea::serve
