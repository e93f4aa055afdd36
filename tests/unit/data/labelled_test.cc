#include "data/labelled.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

using Texts = std::vector<std::string>;

class Labelled : public testing::Test {
 protected:
  LabelledTexts read(const std::string& name, const std::string& content,
                     ProblemType problem = ProblemType::automatic) const {
    write_file_atomically(folder_ / name, content);
    return read_labelled({folder_ / name}, problem);
  }
  void expect_refused(const std::string& name, const std::string& content,
                      std::initializer_list<std::string> texts) const {
    expect_error(ErrorKind::BadFile, texts, [&] { read(name, content); });
  }
  TemporaryFolder folder_;
};

TEST_F(Labelled, ReadsTabSeparatedLines) {
  const LabelledTexts found =
      read("a.tsv", "sentence\tlabel\ngood film\tpos\n\nbad\tneg\n \tneg\na\tb\tpos\n");
  ASSERT_EQ(found.rows.size(), 3u);
  EXPECT_EQ(found.rows[0].text, "good film");
  EXPECT_EQ(found.rows[0].label, "pos");
  EXPECT_EQ(found.rows[2].pair, "b");
  EXPECT_EQ(found.empty, 2);
  EXPECT_FALSE(found.by_word);
  EXPECT_EQ(label_names(found), (Texts{"neg", "pos"}));
}

TEST_F(Labelled, ReadsJsonLines) {
  const LabelledTexts found =
      read("a.jsonl",
           "{\"text\": \"a\", \"label\": 10}\n\n{\"text\": \"b\", \"label\": 9, "
           "\"text_pair\": \"c\"}\n{\"text\": \"\", \"label\": 1}\n");
  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(found.rows[1].pair, "c");
  EXPECT_EQ(label_names(found), (Texts{"9", "10"}));  // numbers are ordered by value
}

TEST_F(Labelled, ReadsALabelPerWord) {
  const LabelledTexts found =
      read("a.json", "{\"tokens\": [\"New\", \"York\"], \"tags\": [\"B\", \"I\"]}\n");
  EXPECT_TRUE(found.by_word);
  EXPECT_EQ(found.rows[0].words, (Texts{"New", "York"}));
  EXPECT_EQ(label_names(found), (Texts{"B", "I"}));
}

TEST_F(Labelled, NamesTheInvalidLine) {
  expect_refused("a.tsv", "a\tb\nno label\n", {"a.tsv:2", "1 column"});
  expect_refused("a.tsv", "a\tb\tc\td\n", {"a.tsv:1", "4 columns"});
  expect_refused("a.tsv", "a\t\n", {"a.tsv:1", "label is empty"});
  expect_refused("a.tsv", "\n\n", {"a.tsv", "no labelled text"});
  expect_refused("a.tsv", "a\xFF\tb\n", {"a.tsv:1:2", "not UTF-8"});
  expect_refused("a.jsonl", "{\"text\": \"a\"}\n", {"a.jsonl:1", "label is null"});
  expect_refused("a.jsonl", "{\"label\": \"a\"}\n", {"a.jsonl:1", "text"});
  expect_refused("a.jsonl", "[1]\n", {"a.jsonl:1", "expected an object"});
  expect_refused("a.jsonl", "{\"tokens\": [\"a\"], \"labels\": []}\n", {"1 words and 0 labels"});
  expect_refused("a.jsonl",
                 "{\"tokens\": [\"a\"], \"labels\": [1]}\n{\"text\": \"a\", \"label\": 1}\n",
                 {"expected only one kind"});
  expect_refused("a.jsonl", "{\"text\": \"a\", \"label\": true}\n",
                 {"a.jsonl:1", "\"label\": a label is true", "a string or a number"});
  expect_refused("a.jsonl", "{\"text\": \"a\", \"labels\": [\"x\", null]}\n",
                 {"a.jsonl:1", "\"labels\": a label is null"});
  expect_refused("a.jsonl",
                 "{\"text\": \"a\", \"labels\": []}\n{\"text\": \"b\", \"label\": \"x\"}\n",
                 {"a.jsonl:2", "has \"label\"; expected \"labels\""});
  expect_refused("a.conll", "Paris B-LOC\nalone\n", {"a.conll:2", "has one column"});
}

TEST_F(Labelled, ReadsSeveralLabelsPerText) {
  const LabelledTexts found = read("a.jsonl",
                                   "{\"text\": \"a\", \"labels\": [\"x\", \"y\"]}\n"
                                   "{\"text\": \"b\", \"labels\": []}\n");
  EXPECT_EQ(found.problem, ProblemType::multi_label);
  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(found.rows[0].labels, (Texts{"x", "y"}));
  EXPECT_TRUE(found.rows[1].labels.empty());
  EXPECT_EQ(label_names(found), (Texts{"x", "y"}));
  const LabelledTexts columns = read("a.tsv", "a\tx, y\nb\t\nc\ty\n", ProblemType::multi_label);
  EXPECT_EQ(columns.rows[0].labels, (Texts{"x", "y"}));
  EXPECT_TRUE(columns.rows[1].labels.empty());
  expect_error(ErrorKind::BadFile, {"a.tsv:1", "empty label"},
               [&] { read("a.tsv", "a\tx,,y\n", ProblemType::multi_label); });
}

TEST_F(Labelled, ReadsNumbers) {
  const std::string lines = "a\tb\t3.5\nc\td\t4\n";
  const LabelledTexts found = read("a.tsv", lines);
  EXPECT_EQ(found.problem, ProblemType::regression);
  EXPECT_EQ(found.rows[0].number, 3.5);
  EXPECT_EQ(found.rows[1].number, 4);
  EXPECT_TRUE(label_names(found).empty());
  EXPECT_EQ(label_names(read("a.tsv", lines, ProblemType::single_label)), (Texts{"3.5", "4"}));
  // Integers are classes, unless the numbers are asked for.
  EXPECT_EQ(read("a.tsv", "a\t1\nb\t2\n").problem, ProblemType::single_label);
  EXPECT_EQ(read("a.tsv", "a\t1\nb\t2\n", ProblemType::regression).rows[1].number, 2);
  expect_error(ErrorKind::BadFile, {"a.tsv:2", "\"label\" is \"good\"", "a number"},
               [&] { read("a.tsv", "a\t1\nb\tgood\n", ProblemType::regression); });
}

TEST_F(Labelled, ReadsConllFiles) {
  const LabelledTexts found = read("a.conll",
                                   "-DOCSTART- -X- O O\n\nNew NNP I-NP B-LOC\nYork NNP I-NP "
                                   "I-LOC\n\nis\tO\r\n\n\n");
  EXPECT_TRUE(found.by_word);
  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(found.rows[0].words, (Texts{"New", "York"}));
  EXPECT_EQ(found.rows[0].labels, (Texts{"B-LOC", "I-LOC"}));
  EXPECT_EQ(found.rows[1].labels, (Texts{"O"}));
}

}  // namespace
}  // namespace fovea
