#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/tokenizer.h"
#include "tokenizer/state/state.h"

namespace fovea::text {

// A token and the bytes of the text that it covers. `text`, if not empty, is the token's text
// instead of that in the vocabulary; it is valid only during the callback.
struct TokenWithSpan {
  int32_t id;
  Span span;
  std::string_view text;
  bool inner = false;  // not the first token of a piece of the pre-tokenizer
};
using OnToken = std::function<void(const TokenWithSpan&)>;

// The mark before a guarded special token; see Tokenizer::guarded().
inline constexpr std::string_view kGuard = "\xEF\xB7\x90";  // U+FDD0
std::string guarded_text(const TokenizerState& state, std::string_view text);

// Appends the ids of the text's tokens, without adding special tokens and without truncation.
void encode_ids(const TokenizerState& state, std::string_view text, SpecialTokens special,
                std::vector<int32_t>& ids);
// Calls on_token for each of the tokens whose ids encode_ids() appends.
void encode_with_spans(const TokenizerState& state, std::string_view text, SpecialTokens special,
                       const OnToken& on_token);

}  // namespace fovea::text
