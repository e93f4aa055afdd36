#include "embed/text_format.h"

#include "support/expect_error.h"
#include "support/golden_folder.h"

namespace fovea::infer {
namespace {

using Ids = std::vector<int32_t>;

class TextFormatTest : public testing::Test {
 protected:
  TextFormat format(int64_t most, bool lower_case = false, bool types = true) const {
    return TextFormat(text::Tokenizer::open(folder_.path()), most,
                      {.max_tokens = {}, .lower_case = lower_case, .types = types});
  }
  GoldenFolder folder_{"cross_encoder"};
};

TEST_F(TextFormatTest, MatchesTheTokenizer) {
  const TextFormat longest = format(100);
  const text::Tokenizer& tokenizer = longest.tokenizer();
  const text::EncodingOptions whole{.truncate_and_pad = false};
  for (const std::string text : {"the fox sees", "", "Light , and \xff ?"}) {
    EXPECT_EQ(longest.text(text).ids, tokenizer.encoding(text, whole).ids);
    const text::Encoding pair = tokenizer.encoding(text, "a bird", whole);
    EXPECT_EQ(longest.pair(longest.own_ids(text), "a bird").ids, pair.ids);
    EXPECT_EQ(longest.pair(longest.own_ids(text), "a bird").types, pair.type_ids);
  }
  EXPECT_EQ(longest.text("a").types, Ids());  // empty: all token types are 0
  EXPECT_EQ(format(100, false, false).pair(format(100).own_ids("a"), "the").types, Ids());
  EXPECT_EQ(longest.leading(), 1);
  EXPECT_EQ(longest.trailing(), 1);
}

TEST_F(TextFormatTest, TruncatesTheTextAndKeepsSpecialTokens) {
  const TokenizedText text = format(4).text("the fox sees the bird");
  EXPECT_EQ(text.ids, (Ids{2, 6, 7, 3}));
  EXPECT_EQ(text.cut, 3);
  const TokenizedText pair = format(7).pair(format(7).own_ids("the fox sees the bird"), "a bird");
  EXPECT_EQ(pair.ids, (Ids{2, 6, 7, 3, 5, 10, 3}));
  EXPECT_EQ(pair.types, (Ids{0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(pair.cut, 3);
  EXPECT_EQ(format(4).text("the fox").cut, 0);
}

// Regression: truncation_side was ignored, so that a model read the beginning instead of the end.
TEST_F(TextFormatTest, KeepsTheEndIfTheTokenizerTruncatesAtTheLeft) {
  folder_.set("tokenizer_config.json", "truncation_side", "left");
  const text::Tokenizer tokenizer = text::Tokenizer::open(folder_.path());
  const TextFormat short_texts(tokenizer, 4, text_settings_of(tokenizer));
  const std::string text = "the fox sees the bird";
  EXPECT_EQ(short_texts.text(text).ids, (Ids{2, 6, 10, 3}));
  const text::Offsets span = short_texts.offsets(text)[2];
  EXPECT_EQ(text.substr(span.begin, span.end - span.begin), "bird");
  const TextFormat pairs(tokenizer, 7, text_settings_of(tokenizer));
  EXPECT_EQ(pairs.pair(pairs.own_ids(text), "a bird").ids, (Ids{2, 6, 10, 3, 5, 10, 3}));
  folder_.set("tokenizer_config.json", "truncation_side", "middle");
  expect_error(ErrorKind::BadFile, {"truncation_side is middle", "left or right"},
               [&] { text_settings_of(text::Tokenizer::open(folder_.path())); });
}

// Regression: the byte ranges referred to the text in lower case, which may be longer or shorter.
TEST_F(TextFormatTest, OffsetsReferToTheOriginalText) {
  const std::string text = "\u0130 The fox";  // U+0130 has 2 bytes, its lower case 3
  std::vector<std::string> covered;
  for (const text::Offsets& span : format(100, true).offsets(text))
    covered.push_back(text.substr(span.begin, span.end - span.begin));
  EXPECT_EQ(covered, (std::vector<std::string>{"", "\u0130", "The", "fox", ""}));
}

// The text of a message is framed by the chat template. If it is too long, the tokens that follow
// it in the template replace its last ones.
TEST_F(TextFormatTest, RendersTheMessagesOfAModel) {
  write_file_atomically(folder_ / "chat_template.jinja",
                        "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }} ? "
                        "{% else %}a {{ m.content }} , {% endif %}{% endfor %}"
                        "{% if add_generation_prompt %}bird{% endif %}");
  const auto settings = [&](const nlohmann::json& message, const nlohmann::json& chat) {
    folder_.write("sentence_bert_config.json", {{"modality_config", {{"message", message}}},
                                                {"processing_kwargs", {{"chat_template", chat}}}});
  };
  model::Spec spec;
  spec.context = 100;
  const auto open = [&] { return TextFormat::open(folder_.path(), spec); };
  const auto ids = [&](const std::string& text) { return format(100).own_ids(text); };
  settings({{"format", "flat"}}, {{"add_generation_prompt", true}});
  const TextFormat messages = open();
  EXPECT_TRUE(messages.reads_messages());
  EXPECT_EQ(messages.text("the fox").ids, ids("a the fox , bird"));
  EXPECT_EQ(messages.text("the", "fox").ids, ids("the ? a fox , bird"));
  EXPECT_EQ(messages.text("[SEP]").ids, ids("a [SEP] , bird"));  // of a user: plain text
  expect_error(ErrorKind::Unsupported, {"reads messages", "pairs of texts"},
               [&] { messages.pair({}, "the"); });
  spec.context = 5;
  const TokenizedText cut = open().text("the fox sees the bird");
  // No digit is in the vocabulary, so that the last token of "0" and "1 2 3 4" is the same.
  EXPECT_EQ(cut.ids, ids("a the 0 , bird"));
  EXPECT_EQ(cut.cut, 3);
  settings({{"format", "flat"}}, nlohmann::json::object());
  EXPECT_EQ(open().text("the fox").ids, ids("a the fox ,"));
  settings({{"format", "auto"}}, nlohmann::json::object());
  expect_error(ErrorKind::Unsupported,
               {"modality_config.message.format is \"auto\"; expected flat or structured"}, open);
}

TEST_F(TextFormatTest, RefusesALengthWithoutRoomForText) {
  expect_error(ErrorKind::InvalidArgument, {"maximum length", "2 of them special"},
               [&] { format(2); });
  expect_error(ErrorKind::InvalidArgument, {"maximum length", "two texts"},
               [&] { format(3).pair(format(3).own_ids("a"), "the"); });
}

}  // namespace
}  // namespace fovea::infer
