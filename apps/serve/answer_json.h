#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/ordered_json.h"
#include "serve/served_model.h"

namespace fovea::serve {

// What all objects of one answer have in common.
struct AnswerHead {
  std::string id;
  int64_t created = 0;
  std::string model;
  bool chat = false;

  // {"id", "object", "created", "model", "system_fingerprint"}
  Json object(bool chunk) const;
};

struct TokenCounts {
  int64_t prompt = 0, cached = 0, written = 0;
  Json json() const;  // "usage"
};

// The log-probabilities of some tokens of one choice, in the form of chats or of completions. As
// text: a tree of values would take five times the memory.
class LogprobList {
 public:
  LogprobList(std::optional<Tokenizer> tokenizer, bool chat);
  void add(int32_t id, const TokenLogprob& logprob);
  bool empty() const { return tokens_.empty(); }
  size_t bytes() const { return tokens_.size() + logprobs_.size() + top_.size() + offsets_.size(); }
  std::string take();  // JSON; null if empty. Leaves the list empty.

 private:
  std::string text(int32_t id) const;
  std::string entry(int32_t id, float logprob) const;  // of a chat, without its last brace

  std::optional<Tokenizer> tokenizer_;
  bool chat_;
  size_t offset_ = 0;
  std::string tokens_, logprobs_, top_,
      offsets_;  // parts of JSON arrays; a chat has the first only
};

// null for NaN and infinity, which JSON lacks.
std::string json_number(float number);
// An object with more members, whose values are JSON texts: large ones are never trees.
using Members = std::vector<std::pair<const char*, std::string>>;
std::string json_object(const Json& object, const Members& members);
// "data: ...\n\n"
std::string sse_event(const std::string& data);

Json timings_json(const Generation& generation);
const char* finish_reason(const std::string& finish);

}  // namespace fovea::serve
