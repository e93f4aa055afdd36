#include "hub/name.h"

#include <gtest/gtest.h>

#include "fovea/core/error.h"

namespace fovea::model {
namespace {

const HubSettings kSettings = {.endpoint = "http://localhost:8000", .cache = "", .token = ""};

HubName name_of(const std::string& text) { return parse_name(text, kSettings)->name; }

TEST(HubName, ReadsTheShortForms) {
  EXPECT_EQ(name_of("user/name"), (HubName{.repository = "user/name"}));
  EXPECT_EQ(name_of("hf:user/name"), (HubName{.repository = "user/name"}));
  EXPECT_EQ(name_of("hf:gpt2"), (HubName{.repository = "gpt2"}));
  EXPECT_EQ(name_of("hf:user/name:Q4_K_M"),
            (HubName{.repository = "user/name", .quantisation = "Q4_K_M"}));
  EXPECT_EQ(name_of("user/na.me@v1.0:q8_0"),
            (HubName{.repository = "user/na.me", .revision = "v1.0", .quantisation = "q8_0"}));
  EXPECT_EQ(name_of("hf:user/name@refs/pr/1"),
            (HubName{.repository = "user/name", .revision = "refs/pr/1"}));
  EXPECT_EQ(name_of("hf:user/name:part/x-q8.gguf"),
            (HubName{.repository = "user/name", .file = "part/x-q8.gguf"}));
  EXPECT_EQ(name_of("hf:datasets/user/name"),
            (HubName{.repository = "user/name", .dataset = true}));
}

TEST(HubName, ReadsAddresses) {
  EXPECT_EQ(name_of("https://huggingface.co/user/name"), (HubName{.repository = "user/name"}));
  EXPECT_EQ(name_of("https://huggingface.co/user/name/tree/main/"),
            (HubName{.repository = "user/name"}));
  EXPECT_EQ(name_of("https://hf.co/user/name/blob/v1/a/b.gguf?download=true"),
            (HubName{.repository = "user/name", .revision = "v1", .file = "a/b.gguf"}));
  EXPECT_EQ(name_of("http://localhost:8000/user/name/resolve/refs/pr/2/b.gguf"),
            (HubName{.repository = "user/name", .revision = "refs/pr/2", .file = "b.gguf"}));
  EXPECT_EQ(name_of("hf.co/user/name:Q8_0"),
            (HubName{.repository = "user/name", .quantisation = "Q8_0"}));
  EXPECT_EQ(name_of("https://huggingface.co/datasets/user/name"),
            (HubName{.repository = "user/name", .dataset = true}));
  EXPECT_EQ(name_of("https://huggingface.co/gpt2"), (HubName{.repository = "gpt2"}));
}

TEST(HubName, IsReadBackFromItsText) {
  for (const char* const text :
       {"user/name", "hf:gpt2", "user/name@v1:Q8_0", "hf:datasets/user/name", "user/name:a.gguf"})
    EXPECT_EQ(text_of(name_of(text)), text);
}

TEST(HubName, LeavesPathsAlone) {
  for (const char* const text :
       {"", "model", "./a/b", "/a/b", "a/b/c", "a/", "a b/c", "models/x.gguf", "../x/y", "a//b"})
    EXPECT_FALSE(parse_name(text, kSettings)) << text;
}

// A name becomes a path in the cache and a part of an address.
TEST(HubName, CannotLeaveTheCache) {
  for (const char* const text :
       {"hf:../x", "hf:user/..", "hf:user/name@../../x", "hf:user/name@a/../b", "hf:.user/x",
        "hf:user/name@/etc", "hf:user/name:../x.gguf", "hf:user/name:/x.gguf", "hf:a--b/c",
        "hf:user/name@a\nb", "hf:user/name:a b", "hf:", "hf:a/b/c", "hf:user/na?me",
        "https://huggingface.co/user/name/blob/main/../../x", "https://huggingface.co/",
        "https://huggingface.co/user/name/settings", "hf:user/name:Q8/0",
        "https://huggingface.co/user/name/blob/main"})
    EXPECT_THROW(parse_name(text, kSettings), Error) << text;
}

}  // namespace
}  // namespace fovea::model
