#pragma once

#include <limits>
#include <optional>
#include <string>

#include "fovea/infer/generate.h"
#include "generate/rules.h"
#include "generate/stop_string_matcher.h"

namespace fovea::infer {

// A generation in progress: its tokens, its text, and the reason for its end.
class GenerationBuilder {
 public:
  // Without a tokenizer, the result has no text. `limit`: maximum number of tokens; -1 = no limit.
  // The arguments passed by reference must outlive the GenerationBuilder.
  GenerationBuilder(const text::Tokenizer* tokenizer, const GenerateOptions& options,
                    const GenerationRules& rules, int64_t limit);

  // Adds the next token and returns the text that became final.
  std::string add(int32_t id, const TokenLogprob* logprob);
  // Ends the generation for the reason `why` and returns the text that was held back.
  std::string finish(FinishReason why);

  bool done() const { return result_.finish != FinishReason::none; }
  int64_t left() const {  // remaining tokens
    return limit_ < 0 ? std::numeric_limits<int64_t>::max() : limit_ - std::ssize(result_.ids);
  }
  bool at_limit() const { return std::ssize(result_.ids) == limit_; }
  const std::vector<int32_t>& ids() const { return result_.ids; }
  Generation& result() { return result_; }

 private:
  std::string emit(std::string sure);
  bool skips(int32_t id) const;  // whether the text excludes the token

  const GenerateOptions& options_;
  const GenerationRules& rules_;
  int64_t limit_;
  std::optional<text::StreamingDecoder> decoder_;
  const text::Tokenizer* skipping_ = nullptr;  // set if some special tokens are kept
  StopStringMatcher watch_;
  Generation result_;
};

}  // namespace fovea::infer
