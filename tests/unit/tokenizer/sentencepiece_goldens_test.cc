// Compares with the ids and texts of SentencePiece itself: a .model whose directory names no class
// of transformers is read as that package reads it, in all its settings.

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/files.h"
#include "base/json.h"
#include "fovea/text/tokenizer.h"
#include "support/temporary_folder.h"

namespace fovea::text {
namespace {

TEST(SentencePieceGoldens, IdsAndTextsAreThoseOfSentencePiece) {
  const nlohmann::json goldens = read_json("tests/goldens/sentencepiece.json");
  for (const nlohmann::json& golden : goldens) {
    const TemporaryFolder folder;
    write_file_atomically(folder / "tokenizer.model",
                          *from_base64(golden.at("model").get<std::string>()));
    const Tokenizer tokenizer = Tokenizer::open(folder.path());
    tokenizer.save(folder.path());
    const Tokenizer saved = Tokenizer::open(folder.path());  // tokenizer.json takes precedence
    for (const nlohmann::json& each : golden.at("cases")) {
      const auto name = golden.at("name").get<std::string>() + ": " + each.at("text").dump();
      const auto text = each.at("text").get<std::string>();
      const auto ids = each.at("ids").get<std::vector<int32_t>>();
      EXPECT_EQ(tokenizer.encode(text), ids) << name;
      EXPECT_EQ(saved.encode(text), ids) << name << " (saved)";
    }
  }
}

}  // namespace
}  // namespace fovea::text
