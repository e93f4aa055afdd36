#include "data/token_store.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "data/train_tokenizer.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

using Ids = std::vector<int32_t>;

Ids ids_of(const TokenSpan& span) {
  Ids ids(static_cast<size_t>(span.count));
  span.copy(0, span.count, ids.data());
  return ids;
}

class TokenStoreTest : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) {
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }

  TokenStoreOptions cached() const { return {.cache = folder_ / "cache", .in_memory_bytes = 0}; }
  std::string cache_file() const { return folder_ / "cache/tokens.bin"; }

  TemporaryFolder folder_;
};

TEST_F(TokenStoreTest, SplitsTheCorpus) {
  std::string text;
  for (int i = 0; i < 1005; ++i) text += i % 3 == 0 ? "é" : "a";
  Corpus corpus({write("a.txt", text)});
  const text::Tokenizer tokenizer = train_character_tokenizer(corpus);
  const TokenStore store(corpus, tokenizer, {});
  EXPECT_EQ(store.training().count, 904);
  EXPECT_EQ(store.validation().count, 101);
  EXPECT_EQ(store.training().width, 2);
  Ids ids = ids_of(store.training());
  EXPECT_EQ(store.training().bytes, static_cast<int64_t>(tokenizer.decode(ids).size()));
  const Ids rest = ids_of(store.validation());
  EXPECT_EQ(store.validation().bytes, static_cast<int64_t>(tokenizer.decode(rest).size()));
  ids.insert(ids.end(), rest.begin(), rest.end());
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_EQ(store.corpus_hash(), corpus.hash());
}

TEST_F(TokenStoreTest, CountsTheBytesOfUnknownCharactersExactly) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += i % 2 == 0 ? "日" : "é";  // unknown; 3 and 2 bytes
  Corpus other({write("b.txt", "x")}), corpus({write("a.txt", text)});
  const text::Tokenizer tokenizer = train_character_tokenizer(other);
  for (const double validation : {0.0, 0.1, 0.11, 0.5, 0.995}) {
    const TokenStore store(corpus, tokenizer, {.validation = validation});
    const int64_t training = store.training().count;
    EXPECT_EQ(store.training().bytes, (training + 1) / 2 * 3 + training / 2 * 2) << validation;
    EXPECT_EQ(store.training().bytes + store.validation().bytes, 250);
  }
}

TEST_F(TokenStoreTest, CountsBytesFarIntoALargeCorpus) {
  std::string text;
  while (text.size() < (size_t{11} << 20)) text += "abc日é";
  Corpus corpus({write("a.txt", text), write("b.txt", "é\n")});
  const text::Tokenizer tokenizer =
      train_character_tokenizer(corpus, 5);  // some characters stay unknown
  const TokenStore store(corpus, tokenizer, {});
  const int64_t whole = store.training().count / 5, rest = store.training().count % 5;
  const int64_t first[] = {0, 1, 2, 3, 6};  // bytes of the first characters of "abc日é"
  EXPECT_EQ(store.training().bytes, whole * 8 + first[rest]);
  EXPECT_EQ(store.training().bytes + store.validation().bytes,
            static_cast<int64_t>(text.size()) + 3);
}

TEST_F(TokenStoreTest, PutsTheEndOfTextBetweenDocuments) {
  Corpus corpus({write("a.jsonl", "{\"text\":\"ab\"}\n{\"text\":\"\"}\n{\"text\":\"b\"}\n"),
                 write("c.txt", "a")});
  const text::Tokenizer tokenizer = train_character_tokenizer(corpus);
  const TokenStore store(corpus, tokenizer, {.validation = 0});
  EXPECT_EQ(tokenizer.decode(ids_of(store.training())), "ab<|endoftext|>b<|endoftext|>a");
  EXPECT_EQ(store.training().bytes, 4);
  const TokenStore half(corpus, tokenizer, {.validation = 0.5});  // "ab" and the separator
  EXPECT_EQ(half.training().count, 3);
  EXPECT_EQ(half.training().bytes, 2);
}

TEST_F(TokenStoreTest, ReusesAMatchingCacheFile) {
  Corpus corpus({write("a.txt", "abcabcabcabc")});
  const text::Tokenizer tokenizer = train_character_tokenizer(corpus);
  const TokenStore memory(corpus, tokenizer, {}), built(corpus, tokenizer, cached());
  EXPECT_FALSE(memory.reused() || built.reused());
  Corpus again({folder_ / "a.txt"});
  const TokenStore reused(again, tokenizer, cached());
  EXPECT_TRUE(reused.reused());
  for (const TokenStore* store : {&built, &reused}) {
    EXPECT_EQ(ids_of(store->training()), ids_of(memory.training()));
    EXPECT_EQ(ids_of(store->validation()), ids_of(memory.validation()));
    EXPECT_EQ(store->training().bytes, memory.training().bytes);
    EXPECT_EQ(store->corpus_hash(), memory.corpus_hash());
  }
  EXPECT_EQ(list_files(folder_ / "cache"), std::vector<std::string>{"tokens.bin"});
}

TEST_F(TokenStoreTest, KeepsATemporaryFileWhereNothingIsWritten) {
  Corpus corpus({write("a.txt", "abcabcabcabc")});
  const text::Tokenizer tokenizer = train_character_tokenizer(corpus);
  const TokenStore memory(corpus, tokenizer, {});
  TokenStoreOptions options = cached();
  options.writes = false;
  const TokenStore store(corpus, tokenizer, options),
      other(corpus, tokenizer, {.in_memory_bytes = 0});
  EXPECT_FALSE(is_folder(folder_ / "cache"));
  for (const TokenStore* each : {&store, &other}) {
    EXPECT_NE(each->training().file, nullptr);
    EXPECT_EQ(ids_of(each->training()), ids_of(memory.training()));
    EXPECT_EQ(ids_of(each->validation()), ids_of(memory.validation()));
  }
}

// Each part of a mixture is divided by itself, wherever the ids are.
TEST_F(TokenStoreTest, HoldsOutTheEndOfEachPart) {
  const std::vector<std::filesystem::path> paths = {write("a.txt", "abcabcabcé"),
                                                    write("b.txt", "ccccé")};
  Corpus corpus(paths, {1, 0.5}), other(paths, {1, 2}), plain(paths);
  const text::Tokenizer tokenizer = train_character_tokenizer(plain);
  EXPECT_EQ(corpus.weights(), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(plain.weights(), (std::vector<double>{1}));
  EXPECT_EQ(Corpus(paths, {1, 1}).hash(), plain.hash());
  TokenStoreOptions options = cached();
  options.validation = 0.2;
  const TokenStore memory(corpus, tokenizer, {.validation = 0.2}), file(corpus, tokenizer, options),
      again(corpus, tokenizer, options);
  EXPECT_FALSE(file.reused());
  EXPECT_TRUE(again.reused());
  EXPECT_FALSE(TokenStore(other, tokenizer, options).reused());  // its weights are in its hash
  for (const TokenStore* store : {&memory, &file, &again}) {
    ASSERT_EQ(store->parts().size(), 2u);
    const auto& [first, first_held_out] = store->parts()[0];
    const auto& [second, second_held_out] = store->parts()[1];
    EXPECT_EQ(tokenizer.decode(ids_of(first)), "abcabcab");
    EXPECT_EQ(tokenizer.decode(ids_of(first_held_out)), "cé");
    EXPECT_EQ(tokenizer.decode(ids_of(second)), "<|endoftext|>ccc");
    EXPECT_EQ(tokenizer.decode(ids_of(second_held_out)), "cé");
    EXPECT_EQ(first.bytes, 8);
    EXPECT_EQ(first_held_out.bytes, 3);
    EXPECT_EQ(second.bytes, 3);
    EXPECT_EQ(second_held_out.bytes, 3);
  }
}

TEST_F(TokenStoreTest, RebuildsAMismatchedCacheFile) {
  Corpus corpus({write("a.txt", "abcabcabcabc")}), other({write("b.txt", "abcabcabcabd")});
  const text::Tokenizer tokenizer = train_character_tokenizer(corpus),
                        small = train_character_tokenizer(corpus, 3);
  const auto reused = [&](Corpus& data, const text::Tokenizer& with, double validation) {
    TokenStoreOptions options = cached();
    options.validation = validation;
    return TokenStore(data, with, options).reused();
  };
  EXPECT_FALSE(reused(corpus, tokenizer, 0.1));
  EXPECT_TRUE(reused(corpus, tokenizer, 0.1));
  EXPECT_FALSE(reused(corpus, tokenizer, 0.5));
  EXPECT_FALSE(reused(corpus, small, 0.5));
  EXPECT_FALSE(reused(other, small, 0.5));
  EXPECT_TRUE(reused(other, small, 0.5));
}

TEST_F(TokenStoreTest, RebuildsADamagedCacheFile) {
  Corpus corpus({write("a.txt", "abcabcabcabc")});
  const text::Tokenizer tokenizer = train_character_tokenizer(corpus);
  const TokenStore built(corpus, tokenizer, cached());
  const std::string good = read_file(cache_file());
  ASSERT_EQ(good.size(), 12 * 2 + 32 + 64u);
  std::vector<std::string> damaged = {"", "x", good.substr(1), good.substr(0, good.size() - 1),
                                      good + "x"};
  // Flips a bit in the ids and in each field of the footer.
  for (size_t i = 0; i < good.size(); i += 4) {
    damaged.push_back(good);
    damaged.back()[i] ^= 1;
  }
  for (const std::string& bytes : damaged) {
    write_file_atomically(cache_file(), bytes);
    const TokenStore store(corpus, tokenizer, cached());
    ASSERT_FALSE(store.reused());
    ASSERT_EQ(ids_of(store.training()), ids_of(built.training()));
    ASSERT_EQ(read_file(cache_file()), good);
  }
}

TEST_F(TokenStoreTest, RemovesAPartialCacheFile) {
  Corpus corpus({write("a.txt", "abcabcabcabc")});
  const text::Tokenizer tokenizer = train_character_tokenizer(corpus);
  make_directories(folder_ / "cache");
  const SavedCalls saved;
  system_calls().write = [](int, const void*, size_t) -> ssize_t {
    errno = ENOSPC;
    return -1;
  };
  expect_error(ErrorKind::Failed,
               {"tokens.bin: cannot be written (write: No space left on device); expected"},
               [&] { TokenStore store(corpus, tokenizer, cached()); });
  std::error_code ignored;
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "cache", ignored));
}

TEST_F(TokenStoreTest, StoresWideIdsOfALargeVocabulary) {
  std::string text;
  for (uint32_t c = 0x10000; c < 0x10000 + 70000; ++c) {
    for (const uint32_t byte :
         {0xF0u | c >> 18, 0x80u | (c >> 12 & 63), 0x80u | (c >> 6 & 63), 0x80u | (c & 63)})
      text.push_back(static_cast<char>(byte));
  }
  Corpus corpus({write("a.txt", text)});
  const text::Tokenizer tokenizer = train_character_tokenizer(corpus);
  const TokenStore store(corpus, tokenizer, cached());
  EXPECT_EQ(store.training().width, 4);
  int32_t last = 0;
  store.validation().copy(store.validation().count - 1, 1, &last);
  EXPECT_EQ(last, 69999);
}

TEST_F(TokenStoreTest, RefusesAnInvalidFraction) {
  Corpus corpus({write("a.txt", "abc")});
  const text::Tokenizer tokenizer = train_character_tokenizer(corpus);
  for (const double validation : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    expect_error(ErrorKind::InvalidArgument,
                 {"validation: is ", "; expected at least 0 and below 1"},
                 [&] { TokenStore store(corpus, tokenizer, {.validation = validation}); });
  }
}

}  // namespace
}  // namespace fovea::train
