#include "tokenizer/more_tokens.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "tokenizer/training/character_trainer.h"

namespace fovea::text {
namespace {

TEST(MoreTokens, GetTheNextIdsAndAreSaved) {
  CharacterTrainer trainer;
  trainer.add("<im|>ab");
  const Tokenizer before = trainer.train({.separate_documents = true});
  const Tokenizer made = with_special_tokens(before, {"<|im|>", "<|endoftext|>", "<b>"});
  EXPECT_EQ(made.size(), before.size() + 2);
  EXPECT_EQ(made.id_of("<|im|>"), before.size());
  EXPECT_EQ(made.id_of("<b>"), before.size() + 1);
  EXPECT_EQ(made.eos_id(), before.eos_id());
  const std::string text = "a<|im|>b<b>";
  EXPECT_EQ(made.encode(text), before.encode(text));  // as text
  const int32_t a = *before.id_of("a"), b = *before.id_of("b");
  EXPECT_EQ(made.encode(text, SpecialTokens::parsed),
            (std::vector<int32_t>{a, before.size(), b, before.size() + 1}));
  const TemporaryFolder folder;
  made.save(folder.path());
  EXPECT_EQ(Tokenizer::open(folder.path()).hash(), made.hash());
}

}  // namespace
}  // namespace fovea::text
