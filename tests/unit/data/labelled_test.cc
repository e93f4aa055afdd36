#include "data/labelled.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

using Texts = std::vector<std::string>;

class Labelled : public testing::Test {
 protected:
  LabelledTexts read(const std::string& name, const std::string& content,
                     model::ProblemType problem = model::ProblemType::automatic) const {
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
  const LabelledTexts found = read("a.tsv", "good film\tpos\n\nbad\tneg\n \tneg\na\tb\tpos\n");
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
  expect_refused("a.tsv", "text\tlabel\na\tb\tc\n", {"a.tsv:2: has 3 columns; expected 2"});
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
  expect_refused("a.jsonl", "{\"text\": \"a\", \"label\": {}}\n",
                 {"a.jsonl:1", "\"label\": a label is an object", "a string or a number"});
  expect_refused("a.jsonl",
                 "{\"text\": \"a\", \"labels\": [0, 0]}\n{\"text\": \"b\", \"labels\": []}\n",
                 {"a.jsonl:1", "\"labels\" has \"0\" twice"});
  expect_refused("a.csv", "review,sentiment,topic\na,b,c\n", {"a.csv:1: has sentiment and topic"});
  expect_refused("a.csv", "text,length,toxic\na,9,1\n",
                 {"a.csv:1: names no column label", "length is \"9\" at", "a.csv:2"});
  expect_refused("a.conllu", "1\tx\tx\t_\t_\t_\t_\t_\t_\t_\n", {"a.conllu:1", "UPOS"});
  expect_refused("a.conllu", "1\tx\tx\n", {"a.conllu:1", "3 columns; expected 10"});
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
  EXPECT_EQ(found.problem, model::ProblemType::multi_label);
  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(found.rows[0].labels, (Texts{"x", "y"}));
  EXPECT_TRUE(found.rows[1].labels.empty());
  EXPECT_EQ(label_names(found), (Texts{"x", "y"}));
  const LabelledTexts columns =
      read("a.tsv", "a\tx, y\nb\t\nc\ty\n", model::ProblemType::multi_label);
  EXPECT_EQ(columns.rows[0].labels, (Texts{"x", "y"}));
  EXPECT_TRUE(columns.rows[1].labels.empty());
  expect_error(ErrorKind::BadFile, {"a.tsv:1", "empty label"},
               [&] { read("a.tsv", "a\tx,,y\n", model::ProblemType::multi_label); });
}

TEST_F(Labelled, FindsColumnsByTheirNames) {
  // The names were a text with its label, or the labels were the texts.
  for (const char* content :
       {"Text\tLabel\na\tx\nb\ty\n", "label\ttext\nx\ta\ny\tb\n", "review\tsentiment\na\tx\nb\ty\n",
        "\xEF\xBB\xBF"
        "id\tsentence\tlabel\r\n1\ta\tx\r\n2\tb\ty\r\n",
        "utterance (English)\tlabel\na\tx\nb\ty\n"}) {
    const LabelledTexts found = read("a.tsv", content);
    ASSERT_EQ(found.rows.size(), 2u) << content;
    EXPECT_EQ(found.rows[0].text, "a");
    EXPECT_EQ(found.rows[1].label, "y");
  }
  const LabelledTexts csv =
      read("a.csv", "premise;hypothesis;label\n\"a; b\";\"c\n\"\"d\"\"\";x\n");
  EXPECT_EQ(csv.rows[0].text, "a; b");
  EXPECT_EQ(csv.rows[0].pair, "c\n\"d\"");
  const LabelledTexts json =
      read("a.json", "[{\n\"label\": true, \"sentence1\": \"a\", \"sentence2\": \"b\"}]");
  EXPECT_EQ(json.rows[0].pair, "b");
  EXPECT_EQ(json.rows[0].label, "true");
}

TEST_F(Labelled, ReadsAZeroOrOnePerLabel) {
  const LabelledTexts lists = read("a.jsonl",
                                   "{\"text\": \"a\", \"labels\": [1.0, 1.0, 0.0]}\n"
                                   "{\"text\": \"b\", \"labels\": [0.0, 0.0, 1.0]}\n");
  EXPECT_EQ(label_names(lists), (Texts{"0", "1", "2"}));
  EXPECT_EQ(lists.rows[0].labels, (Texts{"0", "1"}));
  const LabelledTexts numbers = read("a.jsonl",
                                     "{\"text\": \"a\", \"labels\": [0, 1]}\n"
                                     "{\"text\": \"b\", \"labels\": [1]}\n");
  EXPECT_EQ(numbers.rows[0].labels, (Texts{"0", "1"}));  // the labels themselves
  const LabelledTexts columns =
      read("a.csv", "id,comment_text,toxic,insult\n7,a,0,1\n8,b,0,0\n9,c,1,1\n");
  EXPECT_EQ(columns.problem, model::ProblemType::multi_label);
  EXPECT_EQ(columns.rows[0].labels, (Texts{"insult"}));
  EXPECT_TRUE(columns.rows[1].labels.empty());
  EXPECT_EQ(columns.rows[2].labels, (Texts{"toxic", "insult"}));
  const LabelledTexts keys =
      read("a.jsonl", "{\"text\": \"a\", \"toxic\": 1, \"insult\": false}\n");
  EXPECT_EQ(keys.rows[0].labels, (Texts{"toxic"}));
}

TEST_F(Labelled, DescribesTheFirstRecordAndTheLabels) {
  EXPECT_EQ(
      summary_of(read("a.csv", "text,label\na,x\nb,y\nc,y\n")),
      (Texts{"the first record (" + (folder_ / "a.csv") + ":2) is \"a\": x", "labels: x 1, y 2"}));
  EXPECT_EQ(summary_of(read("a.conll", "Anna B-PER\nlives O\n")),
            (Texts{"the first record (" + (folder_ / "a.conll") + ":1) is Anna: B-PER, lives: O",
                   "labels: B-PER 1, O 1"}));
}

TEST_F(Labelled, ReadsNumbers) {
  const std::string lines = "a\tb\t3.5\nc\td\t4\n";
  const LabelledTexts found = read("a.tsv", lines);
  EXPECT_EQ(found.problem, model::ProblemType::regression);
  EXPECT_EQ(found.rows[0].number, 3.5);
  EXPECT_EQ(found.rows[1].number, 4);
  EXPECT_TRUE(label_names(found).empty());
  EXPECT_EQ(label_names(read("a.tsv", lines, model::ProblemType::single_label)),
            (Texts{"3.5", "4"}));
  // Integers are classes, unless the numbers are asked for.
  EXPECT_EQ(read("a.tsv", "a\t1\nb\t2\n").problem, model::ProblemType::single_label);
  EXPECT_EQ(read("a.tsv", "a\t1\nb\t2\n", model::ProblemType::regression).rows[1].number, 2);
  expect_error(ErrorKind::BadFile, {"a.tsv:2", "\"label\" is \"good\"", "a number"},
               [&] { read("a.tsv", "a\t1\nb\tgood\n", model::ProblemType::regression); });
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

// A comment was a word "#" with its last part as the label.
TEST_F(Labelled, SkipsCommentsOfConllFiles) {
  const LabelledTexts found = read("a.conll",
                                   "# id 0 domain=train\nAnna _ _ B-PER\n# _ _ O\n\n"
                                   "# _ _ O\nlives _ _ O\n");
  EXPECT_EQ(found.rows[0].words, (Texts{"Anna", "#"}));
  EXPECT_EQ(found.rows[1].words, (Texts{"#", "lives"}));
  EXPECT_EQ(label_names(found), (Texts{"B-PER", "O"}));
}

TEST_F(Labelled, ReadsPartsOfSpeechOfConllu) {
  const std::string rest = "\t_\t_\t0\troot\t_\t_\n";
  for (const char* name : {"a.conllu", "a.conll"}) {
    const LabelledTexts found =
        read(name, "# text = du gehst\n1-2\tzum\t_\t_" + rest + "1\tzu\tzu\tADP" + rest +
                       "2\tdem\tder\tDET" + rest + "2.1\tx\tx\tX" + rest +
                       "\n# next\n1\t#\t#\tSYM" + rest);
    ASSERT_EQ(found.rows.size(), 2u);
    EXPECT_EQ(found.rows[0].words, (Texts{"zu", "dem"}));
    EXPECT_EQ(found.rows[0].labels, (Texts{"ADP", "DET"}));
    EXPECT_EQ(found.rows[1].words, (Texts{"#"}));
  }
}

}  // namespace
}  // namespace fovea::train
