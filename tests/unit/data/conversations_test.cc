#include "data/conversations.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

class ReadConversations : public testing::Test {
 protected:
  Conversations read(const std::string& lines) const {
    write_file_atomically(path_, lines);
    return read_conversations({path_});
  }
  Conversation record(const std::string& line) const { return read(line + "\n").records.at(0); }
  static std::vector<std::string> messages(const Conversation& record) {
    std::vector<std::string> all;
    for (const auto& message : record.messages) all.push_back(message.json);
    return all;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "chats.jsonl";
};

TEST_F(ReadConversations, KeepsTheKeysOfMessagesInTheirOrder) {
  const Conversation one =
      record(R"({"id": 7, "messages": [{"z": 1, "role": "user", "content": "Hi", "a": [null]},)"
             R"( {"content": null, "role": "assistant", "tool_calls": []}, {"role": "tool",)"
             R"( "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}],)"
             R"( "tools": [{"b": 1, "a": 2}]})");
  EXPECT_EQ(messages(one),
            (std::vector<std::string>{R"({"z":1,"role":"user","content":"Hi","a":[null]})",
                                      R"({"content":null,"role":"assistant","tool_calls":[]})",
                                      R"({"role":"tool","content":"x\ny"})"}));
  EXPECT_FALSE(one.messages[0].answer);
  EXPECT_TRUE(one.messages[1].answer);
  EXPECT_EQ(one.tools, R"([{"b":1,"a":2}])");
  EXPECT_EQ(one.first_trained, 0u);
  EXPECT_EQ(one.location, path_ + ":1");
  EXPECT_EQ(
      record(R"({"messages": [{"role": "user", "content": ""}], "tools": "[{\"b\": 1}]"})").tools,
      R"([{"b":1}])");
}

TEST_F(ReadConversations, RecognisesEachKindOfRecordInOneFile) {
  const Conversations all = read(
      "{\"prompt\": \"1+1=\", \"completion\": \"2\"}\n\n"
      "{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
      "\"content\": \"b\"}, {\"role\": \"user\", \"content\": \"c\"}], "
      "\"completion\": [{\"role\": \"assistant\", \"content\": \"d\"}]}\n"
      "{\"instruction\": \"Add.\", \"input\": \"1 2\", \"output\": \"3\", \"system\": \"S\"}\n"
      "{\"instruction\": \"Say a.\", \"input\": \"\", \"output\": \"a\"}\r\n"
      "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"gpt\", "
      "\"value\": \"r\"}, {\"from\": \"observation\", \"value\": \"s\"}]}");
  ASSERT_EQ(all.records.size(), 5u);
  EXPECT_EQ(messages(all.records[0]),
            (std::vector<std::string>{R"({"role":"user","content":"1+1="})",
                                      R"({"role":"assistant","content":"2"})"}));
  ASSERT_TRUE(all.records[0].plain);
  EXPECT_EQ(all.records[0].plain->prompt, "1+1=");
  EXPECT_EQ(all.records[0].plain->completion, "2");
  EXPECT_EQ(all.records[1].messages.size(), 4u);
  EXPECT_EQ(all.records[1].first_trained, 3u);
  EXPECT_FALSE(all.records[1].plain);
  EXPECT_EQ(all.records[1].location, path_ + ":3");
  EXPECT_EQ(messages(all.records[2]),
            (std::vector<std::string>{R"({"role":"system","content":"S"})",
                                      R"({"role":"user","content":"Add.\n1 2"})",
                                      R"({"role":"assistant","content":"3"})"}));
  EXPECT_EQ(all.records[3].messages[0].json, R"({"role":"user","content":"Say a."})");
  EXPECT_EQ(messages(all.records[4]),
            (std::vector<std::string>{R"({"role":"user","content":"q"})",
                                      R"({"role":"assistant","content":"r"})",
                                      R"({"role":"tool","content":"s"})"}));
}

TEST_F(ReadConversations, RefusesWrongRecordsByLineAndKey) {
  const std::pair<const char*, const char*> cases[] = {
      {"[1]", "expected an object with"},
      {"{\"messages\": [}", "not JSON"},
      {R"({"text": "a"})", "messages is missing; expected a conversation"},
      {R"({"messages": "a"})", "messages is \"a\"; expected a list of messages"},
      {R"({"messages": []})", "messages is "},
      {R"({"messages": [1]})", "messages[0] is 1; expected an object"},
      {R"({"messages": [{"content": "a"}]})", "messages[0].role is missing; expected a text"},
      {R"({"messages": [{"role": 1, "content": "a"}]})", "messages[0].role is 1"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "user"}]})",
       "messages[1].content is missing"},
      {R"({"messages": [{"role": "user", "content": 3}]})", "messages[0].content is 3"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
       "messages[0].content[0] is an object; expected a part of the type text"},
      {R"({"messages": [{"role": "user", "content": "a"}], "tools": {}})", "tools is "},
      {R"({"messages": [{"role": "user", "content": "a"}], "tools": "no"})", "tools is \"no\""},
      {R"({"prompt": "a"})", "completion is missing; expected a text"},
      {R"({"prompt": "a", "chosen": "b", "rejected": "c"})", "completion is missing"},
      {R"({"completion": "a"})", "prompt is missing; expected a text"},
      {R"({"prompt": [{"role": "user", "content": "a"}], "completion": "b"})",
       "completion is \"b\"; expected a list of messages"},
      {R"({"instruction": "a"})", "output is missing; expected a text"},
      {R"({"instruction": "a", "input": 1, "output": "b"})", "input is 1; expected a text"},
      {R"({"conversations": [{"from": "critic", "value": "a"}]})",
       "conversations[0].from is \"critic\"; expected human, gpt, system, tool or function_call"},
      {R"({"conversations": [{"from": "gpt"}]})", "conversations[0].value is missing"},
      {R"({"conversations": [{"from": "function_call", "value": "no call"}]})",
       "conversations[0].value is "},
      {R"({"messages": [{"role": "assistant", "content": "a", "weight": 0.5}]})",
       "messages[0].weight is 0.5; expected 0 or 1"},
      {R"({"instruction": "a", "output": "b", "history": ["c"]})",
       "history is an array of 1 elements; expected a list of pairs"}};
  const std::string good = R"({"prompt": "a", "completion": "b"})";
  for (const auto& [line, mention] : cases) {
    expect_error(ErrorKind::BadFile, {path_ + ":2: ", mention},
                 [&, text = good + "\n" + line + "\n"] { read(text); });
  }
  expect_error(ErrorKind::BadFile, {path_, "contains no conversation"}, [&] { read("\n"); });
}

// Answers of weight 0 were trained.
TEST_F(ReadConversations, KeepsAnswersOfWeightZeroAsContext) {
  const Conversation one = record(
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b",)"
      R"( "weight": 0}, {"role": "assistant", "content": "c", "weight": 1.0}]})");
  EXPECT_EQ(messages(one)[1], R"({"role":"assistant","content":"b"})");
  EXPECT_EQ(messages(one)[2], R"({"role":"assistant","content":"c"})");
  EXPECT_FALSE(one.messages[1].trained);
  EXPECT_TRUE(one.messages[2].trained);
  EXPECT_EQ(summary_of(one), R"(user "a", assistant "b" (not trained), assistant "c")");
}

TEST_F(ReadConversations, ReadsCallsHistoriesAndMessagesOfTurns) {
  EXPECT_EQ(messages(record(R"({"conversations": [{"from": "human", "value": "q"},)"
                            R"( {"from": "function_call", "value": "{\"name\": \"f\",)"
                            R"( \"arguments\": {\"x\": 1}}"},)"
                            R"( {"role": "assistant", "content": "r"}]})")),
            (std::vector<std::string>{
                R"({"role":"user","content":"q"})",
                R"({"role":"assistant","content":"","tool_calls":[{"type":"function","function":)"
                R"({"name":"f","arguments":{"x":1}}}]})",
                R"({"role":"assistant","content":"r"})"}));
  EXPECT_EQ(messages(record(R"({"instruction": "a", "output": "b", "history": [["c", "d"]]})")),
            (std::vector<std::string>{
                R"({"role":"user","content":"c"})", R"({"role":"assistant","content":"d"})",
                R"({"role":"user","content":"a"})", R"({"role":"assistant","content":"b"})"}));
}

TEST_F(ReadConversations, ReadsTheWeightsOfFiles) {
  write_file_atomically(path_, R"({"prompt": "a", "completion": "b"})");
  const std::string odd = folder_ / "odd:3";
  write_file_atomically(odd, R"({"prompt": "c", "completion": "d"})");
  const Conversations all = read_conversations({path_ + ":0.5", odd, odd + ":2"});
  ASSERT_EQ(all.files.size(), 3u);
  EXPECT_EQ(all.files[0].path, path_);
  EXPECT_EQ(all.files[0].weight, 0.5);
  EXPECT_EQ(all.files[1].path, odd);
  EXPECT_EQ(all.files[1].weight, 1);
  EXPECT_EQ(all.files[2].weight, 2);
  EXPECT_EQ(all.records[2].file, 2u);
  EXPECT_NE(all.hash, read_conversations({path_, odd, odd + ":2"}).hash);
  expect_error(ErrorKind::InvalidArgument, {"data: ", "the weight 0; expected more than 0"},
               [&] { read_conversations({path_ + ":0"}); });
  expect_error(ErrorKind::BadFile, {path_ + ":x"}, [&] { read_conversations({path_ + ":x"}); });
}

TEST_F(ReadConversations, AreRecognisedByTheFirstLine) {
  const auto holds = [&](const std::string& text) {
    write_file_atomically(path_, text);
    return holds_conversations({path_ + ":2"});
  };
  EXPECT_TRUE(holds("\n{\"messages\": 1}\nno JSON"));
  EXPECT_TRUE(holds(R"({"prompt": "a"})"));
  EXPECT_TRUE(holds("\xEF\xBB\xBF[\n{\n  \"messages\": [\n  ]\n}]"));
  EXPECT_TRUE(holds("{\"messages\": \"" + std::string(2 << 20, 'x') + "\"}"));
  EXPECT_FALSE(holds(R"({"text": "a", "prompt": "b"})"));
  EXPECT_FALSE(holds(R"(["messages"])"));
  EXPECT_FALSE(holds("messages"));
  EXPECT_FALSE(holds_conversations({path_ + ".txt"}));
  EXPECT_FALSE(holds_conversations({}));
}

}  // namespace
}  // namespace fovea::train
