#include "tokenizer/training/tokenizer_trainer.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/json.h"
#include "base/threads.h"
#include "support/expect_error.h"
#include "tokenizer/training/bpe_trainer.h"
#include "tokenizer/training/unigram_trainer.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using nlohmann::json;
using Merges = std::vector<std::pair<std::string, std::string>>;

// Returns words of a few syllables, the same on every machine; some words are much more frequent
// than others.
std::string sample_text(int words) {
  constexpr std::array syllables = {"ka", "to", "mi", "ra", "ne", "su", "ol", "an", "é", "дом"};
  std::string text;
  uint32_t state = 3;
  const auto next = [&] { return (state = state * 1664525 + 1013904223) >> 20; };
  for (int i = 0; i < words; ++i) {
    uint32_t word = next() % (1 + next() % 300);
    for (; word > 0; word /= 10) text += syllables[word % 10];
    text += i % 12 == 11 ? '\n' : ' ';
  }
  return text;
}

Tokenizer trained(const TokenizerTraining& options, std::string_view text) {
  TokenizerTrainer trainer(options);
  trainer.add(text);
  return *trainer.train();
}

// The example is from the tests of Hugging Face's BPE trainer.
TEST(BpeTrainer, MergesTheMostFrequentPair) {
  const WordCounts words = {{"BERT", 1},  {"GPT-2", 1}, {"and", 1},    {"are", 2},
                            {"big", 1},   {"blue", 1},  {"is", 2},     {"red", 1},
                            {"roses", 1}, {"so", 1},    {"voilets", 1}};
  const TrainedBpe found = train_bpe(words, {.min_frequency = 2});
  EXPECT_EQ(found.texts, (std::vector<std::string>{"-", "2", "B", "E", "G",  "P",   "R", "T", "a",
                                                   "b", "d", "e", "g", "i",  "l",   "n", "o", "r",
                                                   "s", "t", "u", "v", "re", "are", "is"}));
  EXPECT_EQ(found.merges, (Merges{{"r", "e"}, {"a", "re"}, {"i", "s"}}));
  EXPECT_EQ(found.characters, 22u);
}

TEST(BpeTrainer, KeepsTheMostFrequentCharacters) {
  const TrainedBpe found =
      train_bpe({{"aab", 5}, {"xc", 1}}, {.special_tokens = {"<s>"}, .alphabet_limit = 2});
  EXPECT_EQ(found.texts, (std::vector<std::string>{"<s>", "a", "b", "aa", "aab"}));
}

TEST(BpeTrainer, AddsThePrefixOfContinuingSubwords) {
  const TrainedBpe found =
      train_bpe({{"aba", 3}}, {.vocabulary = 6, .continuing_subword_prefix = "##"});
  EXPECT_EQ(found.texts, (std::vector<std::string>{"a", "b", "##b", "##a", "ab", "aba"}));
  EXPECT_EQ(found.merges, (Merges{{"a", "##b"}, {"ab", "##a"}}));
}

TEST(BpeTrainer, CountsBeyond32Bits) {
  const TrainedBpe found =
      train_bpe({{"ab", int64_t{3} << 32}, {"cd", int64_t{5} << 40}}, {.vocabulary = 5});
  EXPECT_EQ(found.merges, (Merges{{"c", "d"}}));
}

TEST(TokenizerTrainer, MatchesTheReferenceForBpe) {
  const json entries = read_json("tests/goldens/trained_bpe.json");
  ASSERT_EQ(entries.size(), 3u);
  for (const json& entry : entries) {
    TokenizerTrainer trainer({.vocabulary = entry["size"]});
    for (const json& line : entry["lines"]) trainer.add(line.get<std::string>());
    const Tokenizer tokenizer = *trainer.train();
    ASSERT_EQ(tokenizer.size(), static_cast<int32_t>(entry["texts"].size()));
    for (int32_t id = 0; id < tokenizer.size(); ++id)
      EXPECT_EQ(tokenizer.text_of(id), entry["texts"][static_cast<size_t>(id)].get<std::string>());
  }
}

TEST(TokenizerTrainer, EveryKindRoundTripsItsText) {
  const std::string text = sample_text(3000);
  for (const TokenizerKind kind : {TokenizerKind::bpe, TokenizerKind::unigram}) {
    for (const bool bytes : {false, true}) {
      const Tokenizer tokenizer = trained({.kind = kind, .vocabulary = 300, .bytes = bytes}, text);
      const std::vector<int32_t> ids = tokenizer.encode(text);
      EXPECT_EQ(tokenizer.decode(ids), text);
      EXPECT_LT(ids.size(), text.size() / 2);
      EXPECT_LE(tokenizer.size(), 300);
      EXPECT_EQ(tokenizer.text_of(*tokenizer.eos_id()), "<|endoftext|>");
    }
  }
}

TEST(TokenizerTrainer, AddsTheSpecialTokensOfWordPiece) {
  const Tokenizer tokenizer =
      trained({.kind = TokenizerKind::wordpiece, .vocabulary = 200, .lowercase = true},
              sample_text(3000) + "KA TO");
  EXPECT_EQ(tokenizer.size(), 200);
  EXPECT_EQ(tokenizer.text_of(1), "[UNK]");
  EXPECT_EQ(tokenizer.unknown_id(), 1);
  EXPECT_EQ(tokenizer.encode("KATO"), tokenizer.encode("kato"));
  EXPECT_EQ(tokenizer.encode("☃"), std::vector<int32_t>{1});
}

TEST(TokenizerTrainer, DoesNotDependOnTheNumberOfThreads) {
  const int threads = thread_count();
  const std::string text = sample_text(20000);
  for (const TokenizerKind kind :
       {TokenizerKind::bpe, TokenizerKind::wordpiece, TokenizerKind::unigram}) {
    const TokenizerTraining options{.kind = kind, .vocabulary = 400};
    set_threads(1);
    const uint64_t alone = trained(options, text).hash();
    set_threads(3);
    EXPECT_EQ(trained(options, text).hash(), alone);
  }
  set_threads(threads);
}

TEST(TokenizerTrainer, StopsOnRequest) {
  for (const TokenizerKind kind : {TokenizerKind::bpe, TokenizerKind::unigram}) {
    TokenizerTrainer trainer({.kind = kind, .vocabulary = 300});
    trainer.add(sample_text(1000));
    EXPECT_FALSE(trainer.train([](double) { return false; }).has_value());
  }
}

TEST(TokenizerTrainer, RefusesATooSmallVocabulary) {
  expect_error(ErrorKind::InvalidArgument, {"vocabulary: is 100", "at least 257"},
               [] { trained({.vocabulary = 100}, "text"); });
  expect_error(ErrorKind::InvalidArgument, {"vocabulary: is 3", "2 special tokens and 4 char"},
               [] { trained({.kind = TokenizerKind::unigram, .vocabulary = 3}, "abcd"); });
  expect_error(ErrorKind::InvalidArgument, {"contains no words"},
               [] { trained({.vocabulary = 300}, ""); });
}

// A line without spaces is one word.
TEST(TokenizerTrainer, AcceptsATextOfOneWord) {
  const std::string text(1 << 18, 'a');
  const Tokenizer tokenizer = trained({.vocabulary = 270}, text);
  EXPECT_EQ(tokenizer.encode(text).size(),
            text.size() >> 13);  // 13 merges, each of two copies of a token
  EXPECT_GT(trained({.kind = TokenizerKind::unigram, .vocabulary = 20}, text).size(), 3);
}

TEST(UnigramTrainer, ScoresAreLogProbabilities) {
  WordCounts words;
  for (int i = 0; i < 300; ++i) words.emplace_back("w" + std::to_string(i * i % 1000), 1 + i % 7);
  std::sort(words.begin(), words.end());
  const std::vector<ScoredPiece> pieces = train_unigram(words, {.pieces = 60});
  EXPECT_EQ(pieces.size(), 60u);
  double sum = 0;
  int characters = 0;
  for (const auto& [text, score] : pieces) {
    sum += std::exp(score);
    characters += text.size() == 1;
    EXPECT_TRUE(std::isfinite(score));
  }
  EXPECT_EQ(characters, 11);
  EXPECT_NEAR(sum, 1, 0.1);
}

TEST(UnigramTrainer, SeedsAreRepeatedSubstrings) {
  const std::vector<ScoredPiece> seeds = unigram_seeds({{"abcd", 2}, {"xbcy", 3}}, 100);
  std::map<std::string, double> found(seeds.begin(), seeds.end());
  EXPECT_EQ(found, (std::map<std::string, double>{{"a", 2},
                                                  {"b", 5},
                                                  {"c", 5},
                                                  {"d", 2},
                                                  {"x", 3},
                                                  {"y", 3},
                                                  {"bc", 10},
                                                  {"abcd", 8},
                                                  {"xbcy", 12}}));
  EXPECT_EQ(unigram_seeds({{"abcd", 2}, {"xbcy", 3}}, 7).back().first, "xbcy");
}

WordCounts counted(std::string_view text, size_t most_characters, int64_t* forgotten = nullptr) {
  WordCounter counter(
      [](std::string_view line, const WordCounter::OnWord& on_word) { on_word(line); },
      most_characters);
  counter.add(text);
  WordCounts words = counter.finish();
  if (forgotten) *forgotten = counter.forgotten();
  return words;
}

TEST(WordCounter, CountsLinesOfDocuments) {
  WordCounter counter(
      [](std::string_view line, const WordCounter::OnWord& on_word) { on_word(line); }, 1000);
  counter.end_line();
  counter.add("a\nb");
  counter.end_line();
  counter.add("a\n");
  counter.end_line();
  counter.add("b\nb");
  EXPECT_EQ(counter.finish(), (WordCounts{{"a\n", 2}, {"b", 2}, {"b\n", 1}}));
}

TEST(WordCounter, DropsRareWordsAtTheLimit) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + "\n" + "often\n";
  int64_t forgotten = 0;
  EXPECT_EQ(counted(text, 1000000, &forgotten).size(), 1001u);
  EXPECT_EQ(forgotten, 0);
  EXPECT_EQ(counted(text, 100, &forgotten), (WordCounts{{"often\n", 1000}}));
  EXPECT_EQ(forgotten, 1);
}

TEST(WordCounter, DoesNotDependOnBlocks) {
  const std::string line = "a line of forty characters, more or less\n";
  std::string text;
  while (text.size() < (size_t{80} << 20)) text += line;
  EXPECT_EQ(counted(text, 1000),
            (WordCounts{{line, static_cast<int64_t>(text.size() / line.size())}}));
}

// Regression: a line that was longer than a thread's share of a block was cut there, so the words
// at the cuts depended on the number of threads.
TEST(WordCounter, DoesNotDependOnThreads) {
  std::string line;
  for (int64_t i = 0; line.size() < (size_t{9} << 20); ++i) line += std::to_string(i * 7919) + " ";
  const int threads = thread_count();
  std::vector<WordCounts> found;
  for (const int count : {1, 3, 8}) {
    set_threads(count);
    found.push_back(counted(line + "\n" + line, size_t{64} << 20));
  }
  set_threads(threads);
  EXPECT_EQ(found[1], found[0]);
  EXPECT_EQ(found[2], found[0]);
}

}  // namespace
}  // namespace fovea::text
