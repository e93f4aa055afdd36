// Small tokenizers of many kinds against what Hugging Face makes of the same texts
// (tools/make_tokenizer_goldens.py).

#include <gtest/gtest.h>

#include "base/json.h"
#include "text/tokenizer_state.h"
#include "unit/base/temporary_folder.h"

namespace fovea {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

Tokenizer tokenizer_of(const json& file) {
  return Tokenizer(parse_tokenizer({file.dump(), ""}, "tokenizer.json", ""));
}

std::vector<Offsets> offsets_of(const json& list) {
  std::vector<Offsets> offsets;
  for (const auto& pair : list) offsets.push_back({pair[0], pair[1]});
  return offsets;
}

Encoding encode(const Tokenizer& tokenizer, const json& expected, bool add_special_tokens) {
  const EncodingOptions options = {add_special_tokens, SpecialTokens::parsed, true};
  const auto text = expected["text"].get<std::string>();
  if (!expected.contains("pair")) return tokenizer.encoding(text, options);
  return tokenizer.encoding(text, expected["pair"].get<std::string>(), options);
}

std::string streamed(const Tokenizer& tokenizer, const Ids& ids) {
  StreamingDecoder decoder(tokenizer);
  std::string text;
  for (const int32_t id : ids) text += decoder.add(id);
  return text + decoder.finish();
}

void expect_case(const Tokenizer& tokenizer, const json& expected) {
  SCOPED_TRACE(expected["text"].dump());
  const Encoding encoding = encode(tokenizer, expected, true);
  EXPECT_EQ(encoding.ids, expected["ids"].get<Ids>());
  EXPECT_EQ(encoding.tokens, expected["tokens"].get<std::vector<std::string>>());
  EXPECT_EQ(encoding.offsets, offsets_of(expected["offsets"]));
  EXPECT_EQ(encoding.type_ids, expected["type_ids"].get<Ids>());
  const Ids plain = encode(tokenizer, expected, false).ids;
  EXPECT_EQ(plain, expected["ids_plain"].get<Ids>());
  EXPECT_EQ(tokenizer.decode(encoding.ids, true), expected["decoded"].get<std::string>());
  EXPECT_EQ(streamed(tokenizer, plain), expected["decoded_plain"].get<std::string>());
  if (expected.contains("pair")) return;
  EXPECT_EQ(tokenizer.encode(expected["text"].get<std::string>(), SpecialTokens::parsed), plain);
}

TEST(TokenizerGoldens, AreWhatHuggingFaceMakesOfThem) {
  const json goldens = read_json("tests/goldens/tokenizers.json");
  for (const json& kind : goldens["kinds"]) {
    SCOPED_TRACE(kind["name"].get<std::string>());
    const Tokenizer tokenizer = tokenizer_of(kind["tokenizer"]);
    for (const json& expected : kind["cases"]) expect_case(tokenizer, expected);
  }
}

TEST(TokenizerGoldens, AreTheSameAfterSaveAndOpen) {
  const json goldens = read_json("tests/goldens/tokenizers.json");
  for (const json& kind : goldens["kinds"]) {
    SCOPED_TRACE(kind["name"].get<std::string>());
    const TemporaryFolder folder;
    const Tokenizer tokenizer = tokenizer_of(kind["tokenizer"]);
    tokenizer.save(folder.path());
    const Tokenizer again = Tokenizer::open(folder.path());
    EXPECT_EQ(again.hash(), tokenizer.hash());
    expect_case(again, kind["cases"][0]);
  }
}

}  // namespace
}  // namespace fovea
