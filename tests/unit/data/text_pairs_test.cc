#include "data/text_pairs.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

using Texts = std::vector<std::string>;

class TextPairFiles : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }
  TextPairs pairs(const Texts& files) const { return read_pairs(files, "pairs"); }
  TemporaryFolder folder_;
};

TEST_F(TextPairFiles, PairTwoFiles) {
  const TextPairs found =
      pairs({file("de", "eins\nzwei\n \nvier\n"), file("en", "one\ntwo\nx\nfour")});
  EXPECT_EQ(found.sources, (Texts{"eins", "zwei", "vier"}));
  EXPECT_EQ(found.targets, (Texts{"one", "two", "four"}));
  EXPECT_EQ(found.empty, 1);
}

TEST_F(TextPairFiles, SplitATableAtTabs) {
  const TextPairs found = pairs({file("table.tsv", "eins\tone\n\nzwei\ttwo\n\tthree\n")});
  EXPECT_EQ(found.sources, (Texts{"eins", "zwei"}));
  EXPECT_EQ(found.targets, (Texts{"one", "two"}));
  EXPECT_EQ(found.empty, 2);
  const TextPairs files = pairs({file("de", "eins\nzwei\n"), file("en", "one\ntwo\n")});
  EXPECT_EQ(found.hash, files.hash);  // the same content
}

TEST_F(TextPairFiles, MayNameTheirColumnsInAnyOrder) {
  const TextPairs found =
      pairs({file("a.csv", "id,Target,Source\n1,\"one, two\",eins\n2,three,drei\n")});
  EXPECT_EQ(found.sources, (Texts{"eins", "drei"}));
  EXPECT_EQ(found.targets, (Texts{"one, two", "three"}));
}

TEST_F(TextPairFiles, RefuseMismatchedFiles) {
  const std::string three = file("de", "a\nb\nc\n"), two = file("en", "a\nb\n");
  expect_error(ErrorKind::BadFile, {"en: has 2 lines", "de has 3", "expected equal numbers"},
               [&] { pairs({three, two}); });
  expect_error(ErrorKind::BadFile, {"en:1: has 1 column", "expected 2"}, [&] { pairs({two}); });
  const std::string wide = file("wide", "a\tb\na\tb\tc\n");
  expect_error(ErrorKind::BadFile, {"wide:2: has 3 columns"}, [&] { pairs({wide}); });
  const std::string blank = file("blank", " \n\n");
  expect_error(ErrorKind::BadFile, {"contains no pair"}, [&] { pairs({blank, blank}); });
  expect_error(ErrorKind::InvalidArgument, {"pairs: 3 files", "expected two"},
               [&] { pairs({two, two, two}); });
  expect_error(ErrorKind::BadFile, {"nowhere"}, [&] { pairs({folder_ / "nowhere", two}); });
  expect_error(ErrorKind::BadFile, {"a.jsonl: has records", "expected a text file"},
               [&] { pairs({file("a.jsonl", "{\"text\": \"one\"}\n")}); });
}

TEST(PairLanguages, AreInTheNamesOfFiles) {
  const auto named = [](const Texts& files) {
    const PairLanguages its = languages_in_names(files);
    return its.source + " " + its.target;
  };
  EXPECT_EQ(named({"data/train.de", "data/train.en"}), "de en");
  EXPECT_EQ(named({"corpus.de-en.tsv"}), "de en");
  EXPECT_EQ(named({"eng-deu.csv"}), "eng deu");
  EXPECT_EQ(named({"train.src", "train.tgt"}), " ");
  EXPECT_EQ(named({"a.de", "b.de"}), " ");
  EXPECT_EQ(named({"a.de", "b"}), " ");
  EXPECT_EQ(named({"pairs.tsv"}), " ");
  EXPECT_EQ(named({"de-en/pairs.tsv"}), " ");
  EXPECT_EQ(named({}), " ");
}

}  // namespace
}  // namespace fovea::train
