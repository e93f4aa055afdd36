#include "base/settings.h"

#include "support/expect_error.h"

namespace fovea {
namespace {

TEST(Settings, AreHarmlessByKeyOrByValue) {
  EXPECT_TRUE(is_harmless("config.json", "transformers.js_config", {{"a", 1}}));
  EXPECT_TRUE(is_harmless("config.json", "use_mrope", false));
  EXPECT_FALSE(is_harmless("config.json", "use_mrope", true));
  EXPECT_TRUE(is_harmless("config.json", "full_attn_mod", 1.0));
  EXPECT_FALSE(is_harmless("config.json", "full_attn_mod", 2));
  EXPECT_TRUE(is_harmless("config.json", "some_new_key", nullptr));
  EXPECT_FALSE(is_harmless("config.json", "some_new_key", false));
  EXPECT_FALSE(is_harmless("generation_config.json", "use_mrope", false));
}

TEST(Settings, UnknownOnesAreRefusedByName) {
  const nlohmann::json settings = {{"penalty_alpha", 0.6}, {"top_k", 4}, {"mine", 1}};
  refuse_unknown_settings({{"mine", 1}, {"guidance_scale", 1}}, "f", "generation_config.json",
                          {"mine"});
  expect_error(
      ErrorKind::Unsupported,
      {"f: penalty_alpha is not known and, as 0.6, may change results; expected no such key"},
      [&] { refuse_unknown_settings(settings, "f", "generation_config.json", {"mine"}); });
}

}  // namespace
}  // namespace fovea
