#pragma once

// Compares the tokens of a text, or of a pair of texts, with those of Hugging Face's tokenizers.
// The expected tokens are in the fixtures and goldens.

#include <gtest/gtest.h>

#include "base/json.h"
#include "fovea/text/tokenizer.h"

namespace fovea::text {

inline std::vector<Offsets> offsets_of(const nlohmann::json& list) {
  std::vector<Offsets> offsets;
  for (const auto& pair : list) offsets.push_back({pair[0], pair[1]});
  return offsets;
}

inline Encoding encode_case(const Tokenizer& tokenizer, const nlohmann::json& expected,
                            bool add_special_tokens) {
  const EncodingOptions options = {add_special_tokens, SpecialTokens::parsed, true};
  const auto text = expected["text"].get<std::string>();
  if (!expected.contains("pair")) return tokenizer.encoding(text, options);
  return tokenizer.encoding(text, expected["pair"].get<std::string>(), options);
}

inline std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  StreamingDecoder decoder(tokenizer);
  std::string text;
  for (const int32_t id : ids) text += decoder.add(id);
  return text + decoder.finish();
}

inline void expect_case(const Tokenizer& tokenizer, const nlohmann::json& expected) {
  using Ids = std::vector<int32_t>;
  SCOPED_TRACE(expected["text"].dump());
  const Encoding encoding = encode_case(tokenizer, expected, true);
  EXPECT_EQ(encoding.ids, expected["ids"].get<Ids>());
  EXPECT_EQ(encoding.tokens.list(), expected["tokens"].get<std::vector<std::string>>());
  EXPECT_EQ(encoding.offsets, offsets_of(expected["offsets"]));
  if (expected.contains("type_ids")) {
    EXPECT_EQ(encoding.type_ids, expected["type_ids"].get<Ids>());
  }
  const Ids plain = encode_case(tokenizer, expected, false).ids;
  EXPECT_EQ(plain, expected["ids_plain"].get<Ids>());
  EXPECT_EQ(tokenizer.decode(encoding.ids, true), expected["decoded"].get<std::string>());
  EXPECT_EQ(tokenizer.decode(plain), expected["decoded_plain"].get<std::string>());
  EXPECT_EQ(streamed(tokenizer, plain), expected["decoded_plain"].get<std::string>());
  if (expected.contains("pair")) return;
  EXPECT_EQ(tokenizer.encode(expected["text"].get<std::string>(), SpecialTokens::parsed), plain);
}

}  // namespace fovea::text
