#include "generate/translation.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "support/expect_error.h"
#include "support/no_memory.h"
#include "tokenizer/training/character_trainer.h"
#include "unit/generate/small_models.h"

namespace fovea::infer {
namespace {

class TranslatorTest : public testing::Test {
 protected:
  TranslatorTest() {
    text::CharacterTrainer trainer;
    trainer.add("abcdefgh\n");
    tokenizer_ = trainer.train({});
  }
  void translate_a_line(model::Transformer& model) {
    const Generator generator{
        .model = model, .tokenizer = &*tokenizer_, .rules = {.start = 0}, .source = &*tokenizer_};
    bool read = false;
    translate(
        generator, {}, test::kPlenty,
        [&]() -> std::optional<std::string> {
          return std::exchange(read, true) ? std::nullopt : std::optional<std::string>("abc");
        },
        [](const Translation&) { return true; });
  }
  std::optional<text::Tokenizer> tokenizer_;
};

TEST_F(TranslatorTest, ReportsTheKindOfAnError) {
  model::Transformer model = test::small_translator();
  translate_a_line(model);
  const test::NoMemory broken;
  expect_error(ErrorKind::OutOfMemory, {"no memory is left"}, [&] { translate_a_line(model); });
}

}  // namespace
}  // namespace fovea::infer
