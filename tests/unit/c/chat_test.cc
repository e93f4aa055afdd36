#include "fovea/text/chat.h"

#include "fovea/infer/generate.h"
#include "unit/c/support.h"

namespace fovea {
namespace {

class CChat : public testing::Test {
 protected:
  CChat() : model_(open_small()) {
    EXPECT_EQ(fovea_chat_open(model_, nullptr, &chat_), FOVEA_OK) << fovea_model_error(model_);
  }
  ~CChat() override {
    fovea_chat_free(chat_);
    fovea_model_free(model_);
  }

  std::string rendered(const fovea_chat_options* options = nullptr) {
    const char* text = nullptr;
    size_t size = 0;
    EXPECT_EQ(fovea_chat_render(chat_, messages_, 2, options, &text, &size), FOVEA_OK)
        << fovea_chat_error(chat_);
    return {text, size};
  }

  fovea_model* const model_;
  fovea_chat* chat_ = nullptr;
  const fovea_message messages_[2] = {{"a", "cat sat", FOVEA_NUL_TERMINATED, nullptr},
                                      {"o", "mat and more", 3, R"({"name": " on"})"}};
};

TEST_F(CChat, RendersTheConversation) {
  EXPECT_EQ(rendered(), "a cat sat\no mat on\nthe ");
  fovea_chat_options options;
  ASSERT_EQ(fovea_chat_options_init(&options, sizeof options), FOVEA_OK);
  options.no_generation_prompt = 1;
  EXPECT_EQ(rendered(&options), "a cat sat\no mat on\n");
}

TEST_F(CChat, GeneratesTheAnswer) {
  const fovea_message one = {"a", "mat", 3, nullptr};
  fovea_generate_options options = generate_options();
  options.max_tokens = -1;
  fovea_generation result = empty_generation();
  ASSERT_EQ(fovea_chat_generate(chat_, &one, 1, nullptr, &options, &result), FOVEA_OK)
      << fovea_chat_error(chat_);
  const model::Model model = model::Model::open(small_model().path());
  infer::GenerateOptions theirs;
  theirs.max_tokens = 16 - 10;  // the context minus the 10 tokens of "a mat\nthe "
  const std::vector<int32_t> prompt = model.tokenizer().encode("a mat\nthe ");
  ASSERT_EQ(prompt.size(), 10u);
  EXPECT_EQ(std::string(result.text, result.text_size),
            infer::generate(model, prompt, theirs)[0].text);
  EXPECT_EQ(result.id_count, 6u);
}

TEST_F(CChat, RefusesLongPromptsAndUnsupportedTools) {
  fovea_generation result = empty_generation();
  EXPECT_EQ(fovea_chat_generate(chat_, messages_, 2, nullptr, nullptr, &result),
            FOVEA_INVALID_ARGUMENT);
  expect_message(fovea_chat_error(chat_), "expected fewer than 16, the model's context");
  fovea_chat_options options;
  ASSERT_EQ(fovea_chat_options_init(&options, sizeof options), FOVEA_OK);
  options.tools = "[]";
  const char* text = nullptr;
  size_t size = 0;
  EXPECT_EQ(fovea_chat_render(chat_, messages_, 2, &options, &text, &size), FOVEA_UNSUPPORTED);
  expect_message(fovea_chat_error(chat_), "tools: not supported by the chat template");
}

TEST_F(CChat, RefusesInvalidMessages) {
  const char* text = nullptr;
  size_t size = 0;
  const auto refuse = [&](const fovea_message& message, const char* part) {
    EXPECT_EQ(fovea_chat_render(chat_, &message, 1, nullptr, &text, &size), FOVEA_INVALID_ARGUMENT);
    expect_message(fovea_chat_error(chat_), part);
  };
  refuse({nullptr, "", 0, nullptr}, "role: NULL");
  refuse({"a", nullptr, 1, nullptr}, "content: NULL");
  refuse({"a", "", 0, "[]"}, "members: not a JSON object");
  refuse({"a", "", 0, "{"}, "members");
  EXPECT_EQ(fovea_chat_render(chat_, nullptr, 1, nullptr, &text, &size), FOVEA_INVALID_ARGUMENT);
}

TEST_F(CChat, OpensTheTemplateOfAFile) {
  const std::string path = small_model() / "other.jinja";
  write_file_atomically(path, "{{ messages[0].content }}");
  fovea_chat* other = nullptr;
  ASSERT_EQ(fovea_chat_open(model_, path.c_str(), &other), FOVEA_OK);
  const char* text = nullptr;
  size_t size = 0;
  ASSERT_EQ(fovea_chat_render(other, messages_, 2, nullptr, &text, &size), FOVEA_OK);
  EXPECT_STREQ(text, "cat sat");
  fovea_chat_free(other);
  EXPECT_EQ(fovea_chat_open(model_, "none.jinja", &other), FOVEA_BAD_FILE);
  EXPECT_EQ(other, nullptr);
}

}  // namespace
}  // namespace fovea
