// Compares small tokenizers of many kinds with Hugging Face's (tools/goldens/make_tokenizers.py).

#include <gtest/gtest.h>

#include "base/json.h"
#include "support/temporary_folder.h"
#include "tokenizer/state/state.h"
#include "unit/tokenizer/tokenizer_cases.h"

namespace fovea::text {
namespace {

using nlohmann::json;

Tokenizer tokenizer_of(const json& file) {
  return Tokenizer(parse_tokenizer({file.dump(), ""}, "tokenizer.json", ""));
}

TEST(TokenizerGoldens, MatchHuggingFace) {
  const json goldens = read_json("tests/goldens/tokenizers.json");
  for (const json& kind : goldens["kinds"]) {
    SCOPED_TRACE(kind["name"].get<std::string>());
    const Tokenizer tokenizer = tokenizer_of(kind["tokenizer"]);
    for (const json& expected : kind["cases"]) expect_case(tokenizer, expected);
  }
}

TEST(TokenizerGoldens, RoundTrip) {
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
}  // namespace fovea::text
