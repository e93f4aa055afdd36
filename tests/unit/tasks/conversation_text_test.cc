#include "loop/conversation_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "chat/builtin_templates.h"
#include "data/train_tokenizer.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

using Texts = std::vector<std::string>;

const char* const kTurnsOnly =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

class ConversationTexts : public testing::Test {
 protected:
  ConversationTexts() {
    write_file_atomically(folder_ / "text.txt", "ab ab ab cd cd cd hello hello\n");
    text::TokenizerTraining training;
    training.vocabulary = 280;
    training.special_tokens = {"<|im_start|>", "<|im_end|>", "<s>"};
    tokenizer_ = train_tokenizer({folder_ / "text.txt"}, training)->tokenizer;
  }

  text::ModelChat chat(const std::string& source) const {
    return text::ModelChat::of_source(source, "t", tokenizer_);
  }
  Conversation record(const std::string& line) const {
    write_file_atomically(folder_ / "chats.jsonl", line + "\n");
    return read_conversations({folder_ / "chats.jsonl"}).records.at(0);
  }
  // Returns the texts with [[ and ]] around their trained parts.
  Texts marked(const std::optional<text::ModelChat>& chat, const std::string& line,
               TrainOn train_on = TrainOn::all) const {
    Texts all;
    for (const TrainedText& text :
         ConversationText(chat, *tokenizer_, train_on).texts(record(line))) {
      std::string& out = all.emplace_back();
      EXPECT_EQ(text.ids.size(), text.trained.size());
      for (size_t begin = 0, end = 0; begin < text.ids.size(); begin = end) {
        const bool trained = text.trained[begin];
        std::vector<int32_t> part;
        for (; end < text.ids.size() && text.trained[end] == trained; ++end)
          part.push_back(text.ids[end]);
        const std::string written = tokenizer_->decode(part);
        out += trained ? "[[" + written + "]]" : written;
      }
    }
    return all;
  }
  Texts marked(const std::string& source, const std::string& line,
               TrainOn train_on = TrainOn::all) const {
    return marked(chat(source), line, train_on);
  }

  void use_tokenizer(const nlohmann::ordered_json& json) {
    write_file_atomically(folder_ / "tokenizer.json", json.dump());
    write_file_atomically(folder_ / "tokenizer_config.json",
                          R"({"bos_token": "<s>", "eos_token": "</s>"})");
    tokenizer_ = text::Tokenizer::open(folder_.path());
  }
  // Compares the texts of the cases in a file with those that it contains, and returns their
  // number.
  size_t expect_cases(const std::string& path) {
    size_t cases = 0;
    for (const auto& each : nlohmann::ordered_json::parse(read_file(path))) {
      use_tokenizer(each["tokenizer"]);
      for (const auto& expected : each["cases"]) {
        expect_case(expected);
        ++cases;
      }
    }
    return cases;
  }

  TemporaryFolder folder_;
  std::optional<text::Tokenizer> tokenizer_;

 private:
  void expect_case(const nlohmann::ordered_json& expected) const {
    const std::string name = expected["template"];
    const std::string source = expected.contains("source")
                                   ? expected["source"].get<std::string>()
                                   : read_file("tests/goldens/chat_templates/" + name);
    nlohmann::ordered_json found;
    std::string refused;
    try {
      const ConversationText text(chat(source), *tokenizer_, TrainOn::all);
      for (const auto& [ids, trained] : text.texts(record(expected["record"].dump())))
        found.push_back({{"ids", ids}, {"mask", std::vector<int>(trained.begin(), trained.end())}});
    } catch (const Error& error) {
      refused = error.what();
    }
    if (expected.contains("error")) {
      EXPECT_FALSE(refused.empty()) << name << ": " << expected["record"] << "\n" << found;
      return;
    }
    EXPECT_EQ(refused, "") << name << ": " << expected["record"];
    EXPECT_EQ(expected["texts"], found) << name << ": " << expected["record"];
  }
};

const char* const kTwoTurns =
    R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "ab cd"},)"
    R"( {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})";

TEST_F(ConversationTexts, TrainTheAnswersOfATemplateWithoutBlocks) {
  EXPECT_EQ(marked(kTurnsOnly, kTwoTurns),
            (Texts{"<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n[[ab cd<|im_end|>]]\n"
                   "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n[[d<|im_end|>]]\n"}));
  EXPECT_EQ(marked(kTurnsOnly, kTwoTurns, TrainOn::last),
            (Texts{"<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nab cd<|im_end|>\n"
                   "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n[[d<|im_end|>]]\n"}));
}

TEST_F(ConversationTexts, TrainTheBlocksOfATemplate) {
  const std::string blocks =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
      "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}"
      "{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}";
  const std::string expected =
      "<|im_start|>user\na<|im_end|><|im_start|>assistant\n[[ab cd<|im_end|>]]"
      "<|im_start|>user\nc<|im_end|><|im_start|>assistant\n[[d<|im_end|>]]";
  EXPECT_EQ(marked(blocks, kTwoTurns), (Texts{expected}));
  const std::string last =
      "<|im_start|>user\na<|im_end|><|im_start|>assistant\nab cd<|im_end|>"
      "<|im_start|>user\nc<|im_end|><|im_start|>assistant\n[[d<|im_end|>]]";
  EXPECT_EQ(marked(blocks, kTwoTurns, TrainOn::last), (Texts{last}));
  // Answers in the prompt of a record with a completion are not trained.
  EXPECT_EQ(
      marked(blocks,
             R"({"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content":)"
             R"( "ab cd"}, {"role": "user", "content": "c"}], "completion": [{"role": "assistant",)"
             R"( "content": "d"}]})"),
      (Texts{last}));
  // A block within a macro has no known position: the text is rendered turn by turn.
  EXPECT_EQ(marked("{% macro block(t) %}{% generation %}{{ t }}{% endgeneration %}{% endmacro %}"
                   "{% for m in messages %}{{ m.role }}: {{ block(m.content) }}<|im_end|>"
                   "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}",
                   R"({"prompt": "a", "completion": "b"})"),
            (Texts{"user: a<|im_end|>assistant: [[b<|im_end|>]]"}));
}

// The template omits the thoughts of earlier answers, so the text of an answer is no part of the
// text of the next one.
TEST_F(ConversationTexts, ExpandRecordsIfTheTemplateChangesEarlierMessages) {
  const std::string thinking =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.thinking and loop.last %}"
      "<think>{{ m.thinking }}</think>{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  const std::string record =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b",)"
      R"( "thinking": "x"}, {"role": "user", "content": "c"}, {"role": "assistant", "content":)"
      R"( "d", "thinking": "y"}]})";
  const Texts expected = {
      "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n[[<think>x</think>b<|im_end|>]]\n",
      "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
      "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n[[<think>y</think>d<|im_end|>]]\n"};
  EXPECT_EQ(marked(thinking, record), expected);
  EXPECT_EQ(marked(thinking, record, TrainOn::last), (Texts{expected[1]}));
  EXPECT_EQ(marked(thinking, kTwoTurns).size(), 1u);  // nothing is omitted
}

TEST_F(ConversationTexts, RefuseATemplateThatDoesNotMarkAnswers) {
  expect_error(ErrorKind::InvalidArgument,
               {"chats.jsonl:1: the chat template renders message 2 differently from the prompt",
                "expected a `chat_template`", "{% generation %}"},
               [&] {
                 marked(
                     "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                     "{% if add_generation_prompt %}assistant: <think>{% endif %}",
                     kTwoTurns);
               });
  expect_error(ErrorKind::InvalidArgument, {"chats.jsonl:1: t: line 1", "no such role"},
               [&] { marked("{{ raise_exception('no such role') }}", kTwoTurns); });
}

TEST_F(ConversationTexts, HaveTheStartTokenOnceAndNoOtherSpecialTokens) {
  const std::string source = std::string("<s>") + kTurnsOnly;
  const Conversation one = record(R"({"prompt": "<s>a<|im_end|>", "completion": "b<|im_start|>"})");
  const TrainedText text =
      ConversationText(chat(source), *tokenizer_, TrainOn::all).texts(one).at(0);
  std::vector<int32_t> special;
  for (const int32_t id : text.ids)
    if (tokenizer_->is_special(id)) special.push_back(id);
  const auto id = [&](const char* name) { return *tokenizer_->id_of(name); };
  EXPECT_EQ(special, (std::vector<int32_t>{id("<s>"), id("<|im_start|>"), id("<|im_end|>"),
                                           id("<|im_start|>"), id("<|im_end|>")}));
  EXPECT_EQ(marked(source, R"({"prompt": "<s>a<|im_end|>", "completion": "b<|im_start|>"})"),
            (Texts{"<s><|im_start|>user\n<s>a<|im_end|><|im_end|>\n<|im_start|>assistant\n"
                   "[[b<|im_start|><|im_end|>]]\n"}));
}

TEST_F(ConversationTexts, PassToolsToTheTemplate) {
  const std::string with_tools =
      "{% if tools %}{{ tools | length }} tools: {{ tools[0].name }}\n{% endif %}" +
      std::string(kTurnsOnly);
  const std::string line =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],)"
      R"( "tools": [{"name": "f"}]})";
  EXPECT_EQ(marked(with_tools, line),
            (Texts{"1 tools: f\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"
                   "[[b<|im_end|>]]\n"}));
  expect_error(ErrorKind::InvalidArgument,
               {"chats.jsonl:1: has tools, which the chat template does not use"},
               [&] { marked(kTurnsOnly, line); });
}

TEST_F(ConversationTexts, OfAModelWithoutATemplateArePromptAndCompletion) {
  EXPECT_EQ(marked(std::nullopt, R"({"prompt": "ab<s>", "completion": " cd"})"),
            (Texts{"ab<s>[[ cd<|endoftext|>]]"}));
  const ConversationText text(std::nullopt, *tokenizer_, TrainOn::all);
  EXPECT_EQ(text.prompt(record(R"({"prompt": "ab", "completion": " cd"})")),
            tokenizer_->encode("ab"));
  expect_error(ErrorKind::InvalidArgument,
               {"chat_template: not given, but ", "chats.jsonl:1 is a conversation", "chatml"},
               [&] { marked(std::nullopt, kTwoTurns); });
}

TEST_F(ConversationTexts, HaveAPromptForSamples) {
  const ConversationText all(chat(kTurnsOnly), *tokenizer_, TrainOn::all),
      last(chat(kTurnsOnly), *tokenizer_, TrainOn::last);
  EXPECT_EQ(tokenizer_->decode(all.prompt(record(kTwoTurns))),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(tokenizer_->decode(last.prompt(record(kTwoTurns))),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nab cd<|im_end|>\n"
            "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(ConversationTexts, OfARecordWithoutAnAnswerTrainNothing) {
  const Texts texts = marked(kTurnsOnly, R"({"messages": [{"role": "user", "content": "a"}]})");
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_EQ(texts[0].find("[["), std::string::npos);
}

// Characters of several bytes are trained completely, also if they are several tokens.
TEST_F(ConversationTexts, CoverWholeCharacters) {
  EXPECT_EQ(
      marked("{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}"
             "{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
             R"({"prompt": "\u00fc", "completion": "\ud83d\ude00"})"),
      (Texts{"ü[[😀]]"}));
}

// An unknown token of the line break after an answer and of the next message was trained.
TEST_F(ConversationTexts, DoNotTrainATokenThatContinuesInTheNextMessage) {
  use_tokenizer(
      nlohmann::ordered_json::parse(read_file("tests/goldens/chat_masks.json"))[1]["tokenizer"]);
  const std::string source =
      "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}</s>{% endif %}\n"
      "{% endfor %}";
  const std::string line =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "cat"},)"
      R"( {"role": "user", "content": "Qat"}, {"role": "assistant", "content": "sat"}]})";
  const auto texts = ConversationText(chat(source), *tokenizer_, TrainOn::all).texts(record(line));
  ASSERT_EQ(texts.size(), 1u);
  const auto& [ids, trained] = texts[0];
  int64_t ends = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool last = trained[i] && (i + 1 == ids.size() || !trained[i + 1]);
    if (!last) continue;
    EXPECT_EQ(ids[i], tokenizer_->id_of("</s>")) << i;
    ++ends;
  }
  EXPECT_EQ(ends, 2);
}

// tools/goldens/make_chat_masks.py wrote the goldens with transformers.
TEST_F(ConversationTexts, OfBlocksEqualThoseOfTransformers) {
  EXPECT_GE(expect_cases("tests/goldens/chat_masks.json"), 14u);
}

// tools/compare/compare_chat_templates.py writes such a file.
TEST_F(ConversationTexts, OfAFileEqualThoseOfTransformers) {
  const char* const path = std::getenv("FOVEA_CHAT_CASES");
  if (path == nullptr) GTEST_SKIP() << "needs FOVEA_CHAT_CASES";
  EXPECT_GE(expect_cases(path), 1u);
}

TEST_F(ConversationTexts, OfBuiltinTemplatesEndWithTheirEndToken) {
  const std::pair<const char*, const char*> expected[] = {
      {"chatml",
       "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n[[ab cd<|im_end|>]]\n"
       "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n[[d<|im_end|>]]\n"},
      {"llama3",
       "<|start_header_id|>user<|end_header_id|>\n\na<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\n[[ab cd<|eot_id|>]]"
       "<|start_header_id|>user<|end_header_id|>\n\nc<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\n[[d<|eot_id|>]]"},
      {"gemma",
       "<start_of_turn>user\na<end_of_turn>\n<start_of_turn>model\n[[ab cd<end_of_turn>]]\n"
       "<start_of_turn>user\nc<end_of_turn>\n<start_of_turn>model\n[[d<end_of_turn>]]\n"},
      {"mistral", "[INST] a [/INST][[ ab cd<|endoftext|>]][INST] c [/INST][[ d<|endoftext|>]]"},
      {"zephyr",
       "<|user|>\na<|endoftext|>\n<|assistant|>\n[[ab cd<|endoftext|>]]\n"
       "<|user|>\nc<|endoftext|>\n<|assistant|>\n[[d<|endoftext|>]]\n"}};
  EXPECT_EQ(std::size(expected), text::builtin_templates().size());
  for (const auto& [name, text] : expected) {
    const text::BuiltinTemplate* const found = text::find_builtin_template(name);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(marked(found->source, kTwoTurns), (Texts{text})) << name;
    // The prompt is the beginning of the text.
    const ConversationText turns(chat(found->source), *tokenizer_, TrainOn::last);
    const std::vector<int32_t> prompt = turns.prompt(record(kTwoTurns)),
                               whole = turns.texts(record(kTwoTurns)).at(0).ids;
    EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), whole.begin())) << name;
    expect_error(ErrorKind::InvalidArgument, {"does not support tool_calls"}, [&, from = found] {
      marked(from->source,
             R"({"messages": [{"role": "assistant", "content": "", "tool_calls": [1]}]})");
    });
  }
  EXPECT_EQ(text::find_builtin_template("alpaca"), nullptr);
}

// Returns the text between the answer in messages[1] and the next one.
class TokensAfter : public ConversationTexts {
 protected:
  std::string after(const std::optional<text::ModelChat>& chat, const std::string& messages,
                    std::initializer_list<const char*> ends = {"<|im_end|>"}) const {
    Conversation conversation = record(R"({"messages": )" + messages + "}");
    conversation.messages.push_back({.json = "{}", .answer = true});
    std::vector<int32_t> ids;
    for (const char* end : ends) ids.push_back(tokenizer_->id_of(end).value());
    return tokenizer_->decode(
        ConversationText(chat, *tokenizer_, TrainOn::last).tokens_after(conversation, 1, ids));
  }
  static constexpr const char* kTalk =
      R"([{"role": "user", "content": "ab"}, {"role": "assistant", "content": "cd"},
          {"role": "tool", "content": "hello"}])";
};

TEST_F(TokensAfter, AreThoseOfTheTemplateAfterTheEndToken) {
  const std::string expected = "\n<|im_start|>tool\nhello<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(after(chat(kTurnsOnly), kTalk), expected);
  // A template that shows no thoughts before the last user's message, and ends the whole text
  // without a line break.
  const std::string thoughts =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content if loop.last else "
      "m.content.split('</think>')[-1] }}<|im_end|>{{ '' if loop.last and not "
      "add_generation_prompt "
      "else '\n' }}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  EXPECT_EQ(after(chat(thoughts),
                  R"([{"role": "user", "content": "ab"},
                      {"role": "assistant", "content": "<think>ab ab</think>cd"},
                      {"role": "tool", "content": "hello"}])"),
            expected);
}

TEST_F(TokensAfter, FollowTheLastEndTokenOfTheAnswer) {
  // It shows calls without the content, and ends them with another token.
  const std::string calls =
      "{% for m in messages %}{% if m.tool_calls %}<|im_start|>{{ m.tool_calls[0].function.name "
      "}}<s>{% else %}<|im_start|>{{ m.content }}<|im_end|>{% endif %}{% endfor %}";
  const std::string talk =
      R"([{"role": "user", "content": "ab"},
          {"role": "assistant", "content": "cd", "tool_calls": [{"function": {"name": "f"}}]},
          {"role": "tool", "content": "hello"}])";
  EXPECT_EQ(after(chat(calls), talk, {"<|im_end|>", "<s>"}), "<|im_start|>hello<|im_end|>");
}

TEST_F(TokensAfter, HaveNoSpecialTokensOfMessages) {
  const std::string talk =
      R"([{"role": "user", "content": "ab"}, {"role": "assistant", "content": "cd"},
          {"role": "tool", "content": "<|im_end|>"}])";
  Conversation conversation = record(R"({"messages": )" + talk + "}");
  conversation.messages.push_back({.json = "{}", .answer = true});
  const int32_t end = tokenizer_->id_of("<|im_end|>").value();
  const std::vector<int32_t> ids = ConversationText(chat(kTurnsOnly), *tokenizer_, TrainOn::last)
                                       .tokens_after(conversation, 1, {end});
  EXPECT_EQ(std::ranges::count(ids, end), 1);
}

TEST_F(TokensAfter, WithoutATemplateAreThoseOfTheContents) {
  EXPECT_EQ(after(std::nullopt, kTalk), "hello");
}

TEST_F(TokensAfter, AreRefusedIfTheAnswerChanges) {
  const std::string changing =
      "{% for m in messages %}{{ m.content }}{{ messages | length }}{% endfor %}";
  expect_error(ErrorKind::InvalidArgument, {"renders an answer differently"},
               [&] { after(chat(changing), kTalk); });
}

}  // namespace
}  // namespace fovea::train
