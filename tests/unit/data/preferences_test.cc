#include "data/preferences.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

class PreferencesInFiles : public testing::Test {
 protected:
  Preferences read(const std::string& lines) const {
    write_file_atomically(path_, lines);
    return read_preferences({path_});
  }
  Preference one(const std::string& line) const { return read(line + "\n").records.at(0); }
  void expect_refused(const std::string& line, const std::string& what,
                      const std::string& expected = "") const {
    expect_error(ErrorKind::BadFile, {path_ + ":1: ", what, expected}, [&] { read(line + "\n"); });
  }
  static std::string texts_of(const Conversation& c) {
    return c.plain ? c.plain->prompt + "|" + c.plain->completion : "";
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "pairs.jsonl";
};

constexpr const char* kUser = R"({"role":"user","content":"a"})";
constexpr const char* kGood = R"({"role":"assistant","content":"b"})";
constexpr const char* kBad = R"({"role":"assistant","content":"c"})";

std::string lists(const std::string& chosen, const std::string& rejected,
                  const std::string& rest = "") {
  return R"({"chosen": [)" + chosen + R"(], "rejected": [)" + rejected + "]" + rest + "}";
}

TEST_F(PreferencesInFiles, HaveTexts) {
  const Preference made = one(R"({"prompt": "p", "chosen": "b", "rejected": "c", "margin": 2})");
  EXPECT_EQ(texts_of(made.chosen), "p|b");
  EXPECT_EQ(texts_of(*made.rejected), "p|c");
  EXPECT_EQ(made.margin, 2);
  EXPECT_EQ(made.chosen.location, path_ + ":1");
}

TEST_F(PreferencesInFiles, HaveMessages) {
  const std::string user = kUser, good = kGood, bad = kBad;
  const Preference given = one(lists(good, bad, R"(, "prompt": [)" + user + "]"));
  const Preference implied = one(lists(user + "," + good, user + "," + bad));
  const Preference repeated =
      one(lists(user + "," + good, user + "," + bad, R"(, "prompt": "another text")"));
  const Preference text = one(lists(good, bad, R"(, "prompt": "a")"));
  for (const Preference* made : {&given, &implied, &repeated, &text}) {
    ASSERT_EQ(made->chosen.messages.size(), 2u);
    EXPECT_EQ(made->chosen.messages[0].json, user);
    EXPECT_EQ(made->chosen.messages[1].json, good);
    EXPECT_EQ(made->rejected->messages[1].json, bad);
    EXPECT_EQ(made->chosen.first_trained, 1u);
    EXPECT_EQ(made->rejected->first_trained, 1u);
  }
  // Equal lists: the last message is the answer.
  EXPECT_EQ(one(lists(user + "," + good, user + "," + good)).chosen.first_trained, 1u);
}

TEST_F(PreferencesInFiles, HaveACommonBeginningAsPrompt) {
  const Preference made = one(R"({"chosen": "Q: a? A: yes", "rejected": "Q: a? A: no"})");
  EXPECT_EQ(texts_of(made.chosen), "Q: a? A:| yes");
  EXPECT_EQ(texts_of(*made.rejected), "Q: a? A:| no");
  // A character is not divided.
  const Preference accents = one(R"({"chosen": "a\u00e9", "rejected": "a\u00e8"})");
  EXPECT_EQ(texts_of(accents.chosen), "a|\u00e9");
}

TEST_F(PreferencesInFiles, MayHaveTheFormatOfOpenAi) {
  const std::string user = kUser, good = kGood, bad = kBad;
  const std::string input = R"("input": {"messages": [)" + user + R"(], "tools": []})";
  const std::string outputs =
      R"("preferred_output": [)" + good + R"(], "non_preferred_output": [)" + bad + "]";
  const Preference made = one("{" + input + ", " + outputs + "}");
  ASSERT_EQ(made.chosen.messages.size(), 2u);
  EXPECT_EQ(made.chosen.messages[0].json, user);
  EXPECT_EQ(made.chosen.messages[1].json, good);
  EXPECT_EQ(made.rejected->messages[1].json, bad);
  EXPECT_EQ(made.chosen.first_trained, 1u);
  EXPECT_EQ(preference_form({path_}), PreferenceForm::pairs);
  expect_refused("{" + outputs + "}", "input is missing", "an object with \"messages\"");
  expect_refused(R"({"input": {}, )" + outputs + "}", "input.messages is null");
  expect_refused("{" + input + R"(, "preferred_output": [)" + good + "]}",
                 "non_preferred_output is missing");
  expect_refused(R"({"input": {"messages": [{"content": "a"}]}, )" + outputs + "}",
                 "input.messages[0].role is missing");
}

TEST_F(PreferencesInFiles, MayBeJudged) {
  const Preferences all = read(R"({"prompt": "p", "completion": "b", "label": true})"
                               "\n\n"
                               R"({"prompt": "p", "completion": "c", "label": false})"
                               "\n");
  ASSERT_EQ(all.records.size(), 2u);
  EXPECT_TRUE(all.records[0].desirable);
  EXPECT_FALSE(all.records[1].desirable);
  EXPECT_FALSE(all.records[0].rejected.has_value());
  EXPECT_EQ(preference_form({path_}), PreferenceForm::judged);
  EXPECT_EQ(texts_of(with_completion_of(all.records[0].chosen, all.records[1].chosen)), "p|c");
}

// Such records were refused, or were read as conversations whose labels have no effect.
TEST_F(PreferencesInFiles, MayHaveTurnsInsteadOfMessages) {
  const Preference made = one(
      R"({"system": "s", "conversations": [{"from": "human", "value": "q"}],)"
      R"( "chosen": {"from": "gpt", "value": "a"}, "rejected": {"from": "gpt", "value": "b"}})");
  ASSERT_EQ(made.chosen.messages.size(), 3u);
  EXPECT_EQ(made.chosen.messages[0].json, R"({"role":"system","content":"s"})");
  EXPECT_EQ(made.chosen.messages[1].json, R"({"role":"user","content":"q"})");
  EXPECT_EQ(made.rejected->messages[2].json, R"({"role":"assistant","content":"b"})");
  EXPECT_EQ(made.chosen.first_trained, 2u);
  const Preference judged = one(
      R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],)"
      R"( "kto_tag": false})");
  EXPECT_EQ(preference_form({path_}), PreferenceForm::judged);
  EXPECT_FALSE(judged.desirable);
  EXPECT_EQ(judged.chosen.first_trained, 1u);
  EXPECT_FALSE(one(R"({"prompt": "p", "completion": "c", "label": 0})").desirable);
  EXPECT_EQ(preference_form({path_}), PreferenceForm::judged);
  expect_refused(R"({"prompt": "p", "completion": "c", "label": 2})", "label is 2");
}

TEST_F(PreferencesInFiles, AreRecognised) {
  const auto form = [&](const std::string& line) {
    write_file_atomically(path_, line);
    return preference_form({path_});
  };
  EXPECT_EQ(form(R"({"chosen": "a", "rejected": "b"})"), PreferenceForm::pairs);
  EXPECT_FALSE(form(R"({"prompt": "a", "completion": "b"})"));
  EXPECT_FALSE(form(R"({"prompt": "a", "completion": "b", "label": "joy"})"));
  EXPECT_FALSE(form("{"));
  EXPECT_FALSE(preference_form({folder_ / "missing.jsonl"}));
  write_file_atomically(path_, R"({"chosen": "a", "rejected": "b"})");
  EXPECT_EQ(preference_form({path_ + ":2"}), PreferenceForm::pairs);
}

TEST_F(PreferencesInFiles, MayHaveWeights) {
  const std::string line = R"({"prompt": "p", "chosen": "b", "rejected": "c"})";
  write_file_atomically(path_, line + "\n");
  write_file_atomically(folder_ / "more.jsonl", line + "\n" + line + "\n");
  const auto read = [&](const std::string& weight) {
    return read_preferences({path_, folder_ / ("more.jsonl" + weight)});
  };
  const Preferences all = read(":0.5");
  ASSERT_EQ(all.files.size(), 2u);
  EXPECT_EQ(all.files[0].weight, 1);
  EXPECT_EQ(all.files[1].weight, 0.5);
  ASSERT_EQ(all.records.size(), 3u);
  EXPECT_EQ(all.records[0].chosen.file, 0u);
  EXPECT_EQ(all.records[2].chosen.file, 1u);
  EXPECT_NE(all.hash, read("").hash);
  EXPECT_EQ(read(":1").hash, read("").hash);
  expect_error(ErrorKind::InvalidArgument, {"data: ", "has the weight 0; expected more than 0"},
               [&] { read(":0"); });
}

TEST_F(PreferencesInFiles, AreRefusedWithTheirLocation) {
  const std::string user = kUser, good = kGood;
  expect_refused("{", "expected a JSON object");
  expect_refused("[]", "expected an object with \"prompt\", \"chosen\"");
  expect_refused(R"({"text": "a"})", "expected an object with \"prompt\", \"chosen\"");
  expect_refused(R"({"prompt": "a", "chosen": "b"})", "rejected is missing");
  expect_refused(R"({"prompt": "a", "chosen": 3, "rejected": "c"})", "chosen is 3");
  expect_refused(R"({"prompt": 4, "chosen": "b", "rejected": "c"})", "prompt is 4");
  expect_refused(R"({"prompt": "a", "chosen": "b", "rejected": []})", "rejected is",
                 "a text, as \"chosen\" is");
  expect_refused(R"({"prompt": "a", "chosen": "b", "rejected": "c", "margin": "d"})", "margin is",
                 "a number");
  expect_refused(R"({"prompt": "a", "completion": "b", "label": 3})", "label is 3");
  expect_refused(R"({"chosen": "b", "rejected": "c"})", "prompt is missing");
  expect_refused(lists(user + "," + good, good), "begin with different messages");
  expect_refused(lists(user + "," + good, user), "rejected has no message");
  expect_refused(lists(R"({"role": "user"})", user), "chosen[0].content is missing");
  expect_error(ErrorKind::BadFile, {path_, "contains no preference"}, [&] { read("\n"); });
}

}  // namespace
}  // namespace fovea::train
