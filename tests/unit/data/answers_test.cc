#include "data/answers.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

class Questions : public testing::Test {
 protected:
  // Reads a file with one paragraph, whose questions are `list`.
  QuestionSet read(const std::string& list) const {
    return read_all(R"({"data": [{"paragraphs": [{"context": "Ein Döner in Köln.", "qas": [)" +
                    list + "]}]}]}");
  }
  QuestionSet read_all(const std::string& content) const {
    write_file_atomically(folder_ / "a.json", content);
    return read_questions({folder_ / "a.json"});
  }
  void expect_refused(const std::string& list, std::initializer_list<std::string> texts) const {
    expect_error(ErrorKind::BadFile, texts, [&] { read(list); });
  }
  TemporaryFolder folder_;
};

TEST_F(Questions, AreReadWithTheirAnswers) {
  const QuestionSet found = read(
      R"({"id": "1", "question": "Where?", "answers": [{"text": "Köln", "answer_start": 13}]},
         {"id": "2", "question": "When?", "is_impossible": true, "answers": [],
          "plausible_answers": []})");
  ASSERT_EQ(found.questions.size(), 2u);
  EXPECT_EQ(found.contexts[found.questions[0].context], "Ein Döner in Köln.");
  ASSERT_EQ(found.questions[0].answers.size(), 1u);
  EXPECT_EQ(found.questions[0].answers[0].begin, 14);  // ö has two bytes
  EXPECT_TRUE(found.questions[1].answers.empty());
  EXPECT_TRUE(hold_questions({folder_ / "a.json"}));
  write_file_atomically(folder_ / "b.json", "{\"text\": \"a\", \"label\": 1}\n");
  EXPECT_FALSE(hold_questions({folder_ / "b.json"}));
  EXPECT_FALSE(hold_questions({folder_ / "missing.json"}));
}

TEST_F(Questions, MayBeRowsOfHuggingFace) {
  const std::string context = "{\n\"title\": \"T\", \"context\": \"Ein Döner in Köln.\", ";
  const QuestionSet found =
      read_all(context + R"("id": "1", "question": "Where?", "answers": {"text": ["Köln"],
      "answer_start": [13]}})" +
               "\n" + context +
               R"("id": "2", "question": "When?", "answers": {"text": [], "answer_start": []}})");
  ASSERT_EQ(found.questions.size(), 2u);
  EXPECT_EQ(found.contexts.size(), 1u);
  EXPECT_EQ(found.questions[0].answers.at(0).begin, 14);
  EXPECT_TRUE(found.questions[1].answers.empty());
  EXPECT_TRUE(hold_questions({folder_ / "a.json"}));
  expect_error(ErrorKind::BadFile, {"a.json:1.answers: has 1 texts and 0 starts"}, [&] {
    read_all(R"({"context": "a", "question": "b", "id": "1",)"
             R"( "answers": {"text": ["a"], "answer_start": []}})");
  });
}

TEST_F(Questions, NameTheInvalidKey) {
  const std::string question = R"({"id": "1", "question": "Where?", "answers": )";
  expect_refused(
      question + R"([{"text": "Bonn", "answer_start": 13}]})",
      {"a.json.data[0].paragraphs[0].qas[0].answers[0]", "\"Bonn\" is not in the context"});
  expect_refused(question + R"([{"text": "Köln", "answer_start": 14}]})", {"at character 14"});
  expect_refused(question + R"([{"text": "Köln", "answer_start": "13"}]})",
                 {"answers[0]: \"answer_start\" is \"13\""});
  expect_refused(question + R"("Köln"})", {"qas[0]: \"answers\" is \"Köln\"; expected a list"});
  expect_refused(R"({"question": "Where?"})", {"qas[0]", "id"});
  expect_refused(R"({"id": "1", "question": "Where?"})", {"\"answers\" is missing"});
  expect_refused("[]", {"qas[0]: is an array"});
  expect_refused("", {"no question"});
  expect_error(ErrorKind::BadFile, {"a.json.data[0]: \"paragraphs\" is missing"},
               [&] { read_all(R"({"data": [{}]})"); });
  expect_error(ErrorKind::BadFile, {"a.json: \"data\" is missing"},
               [&] { read_all(R"({"paragraphs": []})"); });
}

}  // namespace
}  // namespace fovea::train
