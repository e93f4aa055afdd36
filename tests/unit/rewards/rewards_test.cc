#include "rewards/rewards.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

class RewardsOfAnswers : public testing::Test {
 protected:
  RewardsOfAnswers() {
    prompt_.record = R"({"prompt": "6 * 7", "answer": "42", "name": "x"})";
    prompt_.conversation.location = "data.jsonl:3";
  }

  std::vector<double> scores(const ReinforcementOptions& options,
                             const std::vector<std::string>& texts) const {
    std::vector<GeneratedAnswer> answers;
    for (const std::string& text : texts) answers.push_back({&prompt_, text, std::ssize(text)});
    return Rewards(options, DType::f32)(answers).total;
  }
  std::vector<double> of(const std::string& reward, const std::vector<std::string>& texts) const {
    ReinforcementOptions options;
    options.rewards = {reward};
    return scores(options, texts);
  }
  std::vector<double> program(const std::string& command, double seconds = 20) const {
    ReinforcementOptions options;
    options.reward_command = command;
    options.reward_timeout = seconds;
    return scores(options, {"a", "bc"});
  }
  void expect_failure(const std::string& command, std::initializer_list<std::string> parts,
                      double seconds = 20) const {
    expect_error(ErrorKind::Failed, {"reward_command: "}, [&] { program(command, seconds); });
    expect_error(ErrorKind::Failed, parts, [&] { program(command, seconds); });
  }

  Prompt prompt_;
  TemporaryFolder folder_;
};

using Numbers = std::vector<double>;

TEST_F(RewardsOfAnswers, CheckTexts) {
  EXPECT_EQ(of("exact", {" 42\n", "42.0", "The answer is 42"}), (Numbers{1, 0, 0}));
  EXPECT_EQ(of("exact:name", {"x", "42"}), (Numbers{1, 0}));
  EXPECT_EQ(of("numeric", {"so 6 * 7 = 42.", "42.00", "-42", "43", ""}), (Numbers{1, 1, 0, 0, 0}));
  EXPECT_EQ(of("regex:^[0-9]+$", {"42", "x42"}), (Numbers{1, 0}));
  EXPECT_EQ(of("length:2-3", {"1", "12", "123", "1234"}), (Numbers{0, 1, 1, 0}));
  EXPECT_EQ(of("-0.5*length:0-1", {"1", "12"}), (Numbers{-0.5, 0}));
  write_file_atomically(folder_ / "schema.json",
                        R"({"type": "object", "properties": {"n": {"type": "integer"}},
                            "required": ["n"], "additionalProperties": false})");
  EXPECT_EQ(of("schema:" + (folder_ / "schema.json"),
               {R"({"n": 3})", " {\"n\": 3}\n", R"({"n": "3"})", R"({"n": 3)", "3"}),
            (Numbers{1, 1, 0, 0, 0}));
}

TEST_F(RewardsOfAnswers, CompareWithTextsOfTheRecord) {
  EXPECT_EQ(of("string_check:eq:{{item.answer}}", {"42", " 42", "x"}), (Numbers{1, 0, 0}));
  EXPECT_EQ(of("string_check:eq:{{ item.name }} = {{item.answer}}.", {"x = 42.", "x = 42"}),
            (Numbers{1, 0}));
  EXPECT_EQ(of("string_check:ne:{{item.answer}}", {"42", "41"}), (Numbers{0, 1}));
  EXPECT_EQ(of("string_check:like:Yes: {{item.answer}}", {"a Yes: 42!", "yes: 42"}),
            (Numbers{1, 0}));
  EXPECT_EQ(of("2*string_check:ilike:\u00c4h", {"\u00e4H?", "ah"}), (Numbers{2, 0}));
}

TEST_F(RewardsOfAnswers, FindTheLastNumber) {
  EXPECT_EQ(last_number("1 and 2.5."), 2.5);
  EXPECT_EQ(last_number("cost: 1,234,567"), 1234567);
  EXPECT_EQ(last_number("x = -3"), -3);
  EXPECT_EQ(last_number("10-3"), 3);
  EXPECT_EQ(last_number("none"), std::nullopt);
}

TEST_F(RewardsOfAnswers, RefuseWrongOptionsAndRecords) {
  const auto refused = [&](const std::string& reward, std::initializer_list<std::string> parts) {
    expect_error(ErrorKind::InvalidArgument, parts, [&] { of(reward, {"a"}); });
  };
  refused("exakt", {"rewards: exakt is unknown", "expected exact, numeric"});
  refused("string_check:is:a", {"rewards: string_check:is:a", "string_check:eq:TEXT"});
  refused("string_check:eq", {"rewards: string_check:eq; expected"});
  refused("string_check:eq:{{sample.x}}", {"rewards: string_check: {{sample.x}}; expected"});
  refused("string_check:eq:{{item.a", {"rewards: string_check: {{item.a has no }}"});
  expect_error(ErrorKind::BadFile, {"data.jsonl:3: missing is missing"},
               [&] { of("string_check:eq:{{item.missing}}", {"a"}); });
  refused("length:3", {"rewards: length:3", "such as length:1-50"});
  refused("length:3-2", {"rewards: length:3-2"});
  expect_error(ErrorKind::BadFile, {"missing.json"}, [&] { of("schema:missing.json", {"a"}); });
  ReinforcementOptions options;
  options.rewards = {"exact:result"};
  expect_error(ErrorKind::BadFile, {"data.jsonl:3: result is missing"},
               [&] { Rewards(options, DType::f32).require(prompt_); });
  options.rewards = {"numeric:name"};
  expect_error(ErrorKind::BadFile, {"data.jsonl:3: name is \"x\"; expected a number"},
               [&] { Rewards(options, DType::f32).require(prompt_); });
}

TEST_F(RewardsOfAnswers, AddWeightedRewardsAndNameThem) {
  ReinforcementOptions options;
  options.rewards = {"2*regex:a", "regex:b", "0.5*length:0-1"};
  const Rewards rewards(options, DType::f32);
  EXPECT_EQ(rewards.names(), (std::vector<std::string>{"regex", "regex_2", "length"}));
  EXPECT_EQ(scores(options, {"a", "ab", "c"}), (Numbers{2.5, 3, 0.5}));
}

// Such weights gave a loss of NaN in every step.
TEST_F(RewardsOfAnswers, HaveFiniteWeights) {
  for (const char* weight : {"nan", "-nan", "inf", "-inf", "1e308", "-1e7"})
    expect_error(ErrorKind::InvalidArgument, {"rewards: ", std::string(weight) + "*length:0-4"},
                 [&] { of(std::string(weight) + "*length:0-4", {"a"}); });
  EXPECT_EQ(of("1e6*length:0-4", {"a"}), (Numbers{1e6}));
}

// A program that hung delayed the end of a run until `reward_timeout`.
TEST_F(RewardsOfAnswers, EndWithTheRun) {
  ReinforcementOptions options;
  options.rewards = {};
  for (const char* command : {"sleep 100", "sleep 100 & exec >&-; sleep 100"}) {
    options.reward_command = command;
    int looks = 0;
    options.stop = [&] { return ++looks > 3; };
    EXPECT_THROW(scores(options, {"a"}), RewardsStopped) << command;
    EXPECT_EQ(looks, 4) << command;
  }
  options.reward_command = "sleep 100";
  options.stop = [] {  // as the handler of a second signal does
    end_reward_program();
    return false;
  };
  expect_error(ErrorKind::Failed, {"ended by signal 9"}, [&] { scores(options, {"a"}); });
  end_reward_program();  // none runs
}

TEST_F(RewardsOfAnswers, ComeFromAFunction) {
  ReinforcementOptions options;
  options.rewards = {"2*length:2-3"};
  options.reward = [&](const std::vector<RewardedAnswer>& answers) {
    EXPECT_EQ(answers[0].record, prompt_.record);
    Numbers numbers;
    for (const RewardedAnswer& answer : answers)
      numbers.push_back(static_cast<double>(answer.text.size()));
    return numbers;
  };
  EXPECT_EQ(scores(options, {"a", "bc"}), (Numbers{1, 4}));
  options.reward = [](const auto&) { return Numbers{1}; };
  expect_error(ErrorKind::InvalidArgument, {"reward: 1 numbers for 2 answers"},
               [&] { scores(options, {"a", "bc"}); });
  options.reward = [](const auto&) { return Numbers{1, NAN}; };
  expect_error(ErrorKind::InvalidArgument, {"reward: nan"}, [&] { scores(options, {"a", "bc"}); });
}

TEST_F(RewardsOfAnswers, ComeFromAProgram) {
  EXPECT_EQ(program("awk '{ print (length($0) > 0 ? NR * 1.5 : 0) }'"), (Numbers{1.5, 3}));
  EXPECT_EQ(program("grep -q 6.*completion.:.a && printf '{\"reward\": 7}\\n8\\n'"),
            (Numbers{7, 8}));
  EXPECT_EQ(program("printf '1\\n2\\n'"), (Numbers{1, 2}));  // reads nothing
}

TEST_F(RewardsOfAnswers, ReportProgramsThatFail) {
  expect_failure("exit 3", {"exit 3 ended with code 3", "each of 2 answers"});
  expect_failure("kill -9 $$", {"ended by signal 9"});
  expect_failure("no-such-program-here", {"ended with code 127"});
  expect_failure("sleep 20", {"did not end within 0.2 seconds", "`reward_timeout`"}, 0.2);
  expect_failure("sleep 20 & exec >&-; sleep 20", {"did not end within 0.2 seconds"}, 0.2);
  expect_failure("printf '1\\nfoo\\n'", {"line 2 of its output is \"foo\"; expected a number"});
  expect_failure("printf '1\\nNaN\\n'", {"line 2 of its output is \"NaN\""});
  expect_failure("printf '1\\n'", {"wrote 1 rewards", "each of 2 answers"});
  expect_failure("printf '1\\n2\\n3\\n'", {"wrote 3 rewards"});
  expect_failure("yes 1", {"wrote more than 12288 bytes"});
}

}  // namespace
}  // namespace fovea::train
