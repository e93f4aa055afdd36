#pragma once

#include <string>

#include "serve/served_model.h"

namespace fovea::serve {

// What all objects of one answer have in common.
struct AnswerHead {
  std::string id;
  int64_t created = 0;
  std::string model;
  bool chat = false;

  // {"id", "object", "created", "model", "system_fingerprint", "choices": []}
  Json object(bool chunk) const;
};

struct TokenCounts {
  int64_t prompt = 0, cached = 0, written = 0;
  Json json() const;  // "usage"
};

// The log-probabilities of some tokens of one choice, in the form of chats or of completions.
class LogprobList {
 public:
  LogprobList(std::optional<Tokenizer> tokenizer, bool chat);
  void add(int32_t id, const TokenLogprob& logprob);
  bool empty() const { return count_ == 0; }
  Json take();  // null where there is none; the list is empty then

 private:
  std::string text(int32_t id) const;
  Json entry(int32_t id, float logprob) const;

  std::optional<Tokenizer> tokenizer_;
  bool chat_;
  size_t count_ = 0, offset_ = 0;
  Json list_;
};

// A JSON text that is always valid UTF-8 and never holds NaN.
std::string dumped(const Json& json);
// "data: ...\n\n"
std::string sse_event(const std::string& data);

Json timings_json(const Generation& generation);
const char* finish_reason(const std::string& finish);

}  // namespace fovea::serve
