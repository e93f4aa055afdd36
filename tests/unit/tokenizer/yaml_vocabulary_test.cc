#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/expect_error.h"
#include "tokenizer/formats/vocab_files.h"

namespace fovea::text {
namespace {

TEST(YamlVocabulary, TokensMayBeQuoted) {
  const std::string yaml =
      "---\n</s>: 0\n\"<unk>\": 1\n'it''s': 2\n\"\\\"\\\\\": 3\r\n\"\\u2581\\x41\\U0001F600\": 4\n"
      "a: b: 5\n\"\\t:\": 6\n";
  const nlohmann::json expected = {{"</s>", 0}, {"<unk>", 1}, {"it's", 2}, {"\"\\", 3},
                                   {"▁A😀", 4}, {"a: b", 5},  {"\t:", 6},  {"<pad>", 7}};
  EXPECT_EQ(nlohmann::json::parse(vocabulary_of_yaml(yaml, "v.yml")), expected);
}

TEST(YamlVocabulary, OtherLinesAreRefused) {
  for (const char* line :
       {"a", "a: b", "\"a: 1", "\"\\q\": 1", "\"\\u12\": 1", "\"\\", ": 1", "a: 1x", "\"a\" 1"})
    expect_error(ErrorKind::BadFile, {"v.yml: line 2 is not \"token: id\""},
                 [&] { vocabulary_of_yaml(std::string("</s>: 0\n") + line, "v.yml"); });
}

}  // namespace
}  // namespace fovea::text
