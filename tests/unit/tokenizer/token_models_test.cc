#include <gtest/gtest.h>

#include <algorithm>

#include "fovea/core/error.h"
#include "tokenizer/models/bpe.h"
#include "tokenizer/models/piece_cache.h"
#include "tokenizer/models/unigram.h"
#include "tokenizer/models/word_level.h"
#include "tokenizer/models/wordpiece.h"

namespace fovea::text {
namespace {

using Ids = std::vector<int32_t>;
using Spans = std::vector<std::pair<uint32_t, uint32_t>>;

template <class Model>
Ids ids_of(const Model& model, std::string_view stretch) {
  std::vector<Piece> pieces;
  model.encode(stretch, pieces);
  Ids ids;
  for (const Piece& piece : pieces) ids.push_back(piece.id);
  return ids;
}

template <class Model>
Spans spans_of(const Model& model, std::string_view stretch) {
  std::vector<Piece> pieces;
  model.encode(stretch, pieces);
  Spans spans;
  for (const Piece& piece : pieces) spans.emplace_back(piece.begin, piece.end);
  return spans;
}

template <class Model>
std::string error_of(const Model& model, std::string_view stretch) {
  std::vector<Piece> pieces;
  try {
    model.encode(stretch, pieces);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::BadFile);
    return error.what();
  }
  return "";
}

int32_t last_of(const std::vector<std::string>& texts, std::string_view text) {
  for (size_t id = texts.size(); id-- > 0;) {
    if (texts[id] == text) return static_cast<int32_t>(id);
  }
  return -1;
}

// Returns Unigram's segmentation of ASCII text by its definition: tries all pieces at every
// position.
Ids best_path(const UnigramOptions& options, const std::string& text) {
  const double unknown =
      *std::min_element(options.scores.begin(), options.scores.end()) - kUnknownPenalty;
  struct Step {
    double score;
    size_t begin;
    int32_t id;
  };
  std::vector<Step> steps = {{0, 0, 0}};
  for (size_t end = 1; end <= text.size(); ++end) {
    Step best{-1e300, 0, 0};
    for (size_t begin = 0; begin < end; ++begin) {
      const int32_t id = last_of(options.texts, text.substr(begin, end - begin));
      if (id < 0 && begin + 1 < end) continue;
      const double score =
          steps[begin].score + (id < 0 ? unknown : options.scores[static_cast<size_t>(id)]);
      if (score > best.score) best = {score, begin, std::max(id, 0)};
    }
    steps.push_back(best);
  }
  Ids ids;
  for (size_t end = text.size(); end > 0; end = steps[end].begin) {
    if (steps[end].id != 0 || ids.empty() || ids.back() != 0) ids.push_back(steps[end].id);
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

// Returns WordPiece's tokens by its definition; the unknown token has id 0.
Ids longest_first(const std::vector<std::string>& texts, const std::string& word) {
  Ids ids;
  for (size_t start = 0, end = 0; start < word.size(); start = end) {
    int32_t id = -1;
    for (end = word.size() + 1; id < 0 && --end > start;)
      id = last_of(texts, (start == 0 ? "" : "##") + word.substr(start, end - start));
    if (id < 0) return {0};
    ids.push_back(id);
  }
  return ids;
}

TEST(WordLevel, ReturnsAWordOrTheUnknownToken) {
  const WordLevelModel model({{"<unk>", "the", "cat"}, "<unk>"});
  EXPECT_EQ(ids_of(model, "cat"), Ids({2}));
  EXPECT_EQ(ids_of(model, "dog"), Ids({0}));
  EXPECT_EQ(ids_of(model, ""), Ids());
  const WordLevelModel without({{"the"}, "<unk>"});
  EXPECT_NE(error_of(without, "cat").find("lacks \"cat\""), std::string::npos);
}

// Returns the options of a BPE model with the ids 0 a, 1 b, 2 c, 3 ab, 4 bc, 5 abc.
BpeOptions small_bpe() {
  return {.texts = {"a", "b", "c", "ab", "bc", "abc"},
          .merges = {{"a", "b"}, {"b", "c"}, {"ab", "c"}}};
}

TEST(Bpe, MergesTheLowestRankFirst) {
  const BpeModel model(small_bpe());
  EXPECT_EQ(ids_of(model, "abc"), Ids({5}));
  EXPECT_EQ(ids_of(model, "bcab"), Ids({4, 3}));
  EXPECT_EQ(spans_of(model, "bcab"), Spans({{0, 2}, {2, 4}}));
}

TEST(Bpe, MergesTheLeftmostOfEqualRanksFirst) {
  const BpeModel model({.texts = {"a", "aa"}, .merges = {{"a", "a"}}});
  EXPECT_EQ(ids_of(model, "aaaaa"), Ids({1, 1, 0}));
}

TEST(Bpe, DropsUnknownTextWithoutAnUnknownToken) {
  BpeOptions options = small_bpe();
  EXPECT_EQ(ids_of(BpeModel(options), "axxb"), Ids({3}));
  options.texts.emplace_back("<unk>");
  options.unk = "<unk>";
  EXPECT_EQ(ids_of(BpeModel(options), "axéb"), Ids({0, 6, 6, 1}));
  EXPECT_EQ(spans_of(BpeModel(options), "axéb"), Spans({{0, 1}, {1, 2}, {2, 4}, {4, 5}}));
  options.fuse_unk = true;
  EXPECT_EQ(ids_of(BpeModel(options), "axéb"), Ids({0, 6, 1}));
  EXPECT_EQ(spans_of(BpeModel(options), "axéb"), Spans({{0, 1}, {1, 4}, {4, 5}}));
}

TEST(Bpe, FallsBackToBytesIfAllHaveTokens) {
  const BpeModel model({.texts = {"a", "<unk>", "<0xC3>", "<0xA9>"},
                        .merges = {},
                        .unk = "<unk>",
                        .byte_fallback = true});
  EXPECT_EQ(ids_of(model, "aé"), Ids({0, 2, 3}));
  EXPECT_EQ(ids_of(model, "aè"), Ids({0, 1}));
}

TEST(Bpe, UsesThePrefixAndSuffix) {
  const BpeModel model({.texts = {"a", "b", "b</w>", "ab</w>", "a</w>"},
                        .merges = {{"a", "b</w>"}},
                        .end_of_word_suffix = "</w>"});
  EXPECT_EQ(ids_of(model, "ab"), Ids({3}));
  EXPECT_EQ(ids_of(model, "a"), Ids({4}));
  const BpeModel prefixed({.texts = {"a", "##b", "ab", "##ab", "##a"},
                           .merges = {{"a", "##b"}, {"##a", "##b"}},
                           .continuing_subword_prefix = "##"});
  EXPECT_EQ(ids_of(prefixed, "abab"), Ids({2, 3}));
}

TEST(Bpe, PrefersAnEntirePieceToMerges) {
  BpeOptions options{.texts = {"a", "b", "c", "ab", "abc"}, .merges = {{"a", "b"}}};
  EXPECT_EQ(ids_of(BpeModel(options), "abc"), Ids({3, 2}));
  options.ignore_merges = true;
  EXPECT_EQ(ids_of(BpeModel(options), "abc"), Ids({4}));
}

TEST(Bpe, RefusesMergesOfMissingTokens) {
  BpeOptions options{.texts = {"a", "b"}, .merges = {{"a", "b"}}};
  EXPECT_THROW(BpeModel{options}, Error);
  options = {.texts = {"a", "b", "ab"}, .merges = {{"a", "x"}}};
  EXPECT_THROW(BpeModel{options}, Error);
  options = {.texts = {"a", "b", "ab"}, .merges = {{"a", "b"}}, .continuing_subword_prefix = "##"};
  EXPECT_THROW(BpeModel{options}, Error);
}

// Compares the code paths for long and for short texts: texts joined by a character without merges
// are tokenised like the separate texts.
TEST(Bpe, MergesLongTextsLikeShortOnes) {
  const BpeModel model({.texts = {"a", "b", "ab", "ba", "aba", "abab", "|", "bb", "abb", "aa"},
                        .merges = {{"b", "a"},
                                   {"a", "b"},
                                   {"ab", "a"},
                                   {"ab", "ab"},
                                   {"b", "b"},
                                   {"a", "bb"},
                                   {"a", "a"}}});
  uint32_t state = 1;
  std::string all;
  Ids expected;
  for (int word = 0; word < 400; ++word) {
    std::string text;
    for (int i = 0; i < 12; ++i) {
      state = state * 1664525 + 1013904223;
      text += state >> 24 & 1 ? 'a' : 'b';
    }
    text += '|';
    const Ids ids = ids_of(model, text);
    expected.insert(expected.end(), ids.begin(), ids.end());
    all += text;
  }
  EXPECT_EQ(ids_of(model, all), expected);
}

TEST(WordPiece, SelectsTheLongestPieceFirst) {
  const WordPieceModel model({{"[UNK]", "un", "##aff", "##able", "##a", "unaffe"}});
  EXPECT_EQ(ids_of(model, "unaffable"), Ids({1, 2, 3}));
  EXPECT_EQ(spans_of(model, "unaffable"), Spans({{0, 2}, {2, 5}, {5, 9}}));
  EXPECT_EQ(ids_of(model, "unaffx"), Ids({0}));
  EXPECT_EQ(spans_of(model, "unaffx"), Spans({{0, 6}}));
}

TEST(WordPiece, MapsLongWordsToTheUnknownToken) {
  const WordPieceModel model({.texts = {"[UNK]", "é", "##é"}, .max_input_chars_per_word = 3});
  EXPECT_EQ(ids_of(model, "ééé"), Ids({1, 2, 2}));
  EXPECT_EQ(ids_of(model, "éééé"), Ids({0}));
}

UnigramOptions small_unigram() {
  return {.texts = {"<unk>", "a", "b", "c", "d", "cd", "ab", "abc", "abcd"},
          .scores = {0, 0, 0, 0, 0, 1, 2, 5, 10},
          .unk_id = 0};
}

TEST(Unigram, SelectsTheBestScore) {
  const UnigramModel model(small_unigram());
  EXPECT_EQ(ids_of(model, "abcdacdxx"), Ids({8, 1, 5, 0}));
  EXPECT_EQ(spans_of(model, "abcdacdxx"), Spans({{0, 4}, {4, 5}, {5, 7}, {7, 9}}));
}

TEST(Unigram, KeepsTheFirstOfEqualScores) {
  const UnigramModel model({.texts = {"<unk>", "a", "b", "c", "ab", "bc"},
                            .scores = {0, -1, -1, -1, -2, -2},
                            .unk_id = 0});
  EXPECT_EQ(ids_of(model, "ab"), Ids({4}));
  EXPECT_EQ(ids_of(model, "abc"), Ids({1, 5}));
}

TEST(Unigram, FallsBackToBytes) {
  UnigramOptions options = small_unigram();
  options.texts.insert(options.texts.end(), {"<0xC3>", "<0xA9>"});
  options.scores.insert(options.scores.end(), {0, 0});
  options.byte_fallback = true;
  const UnigramModel model(options);
  EXPECT_EQ(ids_of(model, "aéa"), Ids({1, 9, 10, 1}));
  EXPECT_EQ(spans_of(model, "aé"), Spans({{0, 1}, {1, 3}, {1, 3}}));
  EXPECT_EQ(ids_of(model, "èa"), Ids({0, 1}));
  options.unk_id.reset();
  EXPECT_NE(error_of(UnigramModel(options), "x"), "");
}

// Encodes a million bytes, which would take minutes with an algorithm that is not nearly linear.
TEST(TokenModels, TokeniseLongTextsInLinearTime) {
  const size_t size = 1 << 20;
  const std::string text(size, 'a');
  BpeOptions options{.texts = {"a"}};
  std::vector<double> scores = {-5};
  for (int level = 0; level < 5; ++level) {
    const std::string half = options.texts.back();
    options.merges.emplace_back(half, half);
    options.texts.push_back(half + half);
    scores.push_back(-5 + level);
  }
  EXPECT_EQ(ids_of(BpeModel(options), text), Ids(size >> 5, 5));
  const UnigramModel unigram({.texts = options.texts, .scores = scores, .unk_id = {}});
  EXPECT_EQ(ids_of(unigram, text), Ids(size >> 5, 5));
  const UnigramModel unknown({.texts = {"<unk>", "b"}, .scores = {0, -1}, .unk_id = 0});
  EXPECT_EQ(spans_of(unknown, text), Spans({{0, size}}));
  const WordPieceModel words({.texts = {"[UNK]", "a", "##aaaa"},
                              .unk = "[UNK]",
                              .continuing_subword_prefix = "##",
                              .max_input_chars_per_word = size});
  EXPECT_EQ(ids_of(words, text.substr(3)).size(), size / 4);
  EXPECT_EQ(ids_of(words, text), Ids({0}));
  options.texts = {"a", "b", "<unk>"};
  options.merges.clear();
  options.unk = "<unk>";
  options.fuse_unk = true;
  EXPECT_EQ(ids_of(BpeModel(options), std::string(size, '^')), Ids({2}));
}

// Compares the models with their definitions, on vocabularies of two letters in which many pieces
// are suffixes of other pieces.
TEST(TokenModels, MatchTheirDefinitions) {
  uint32_t state = 11;
  const auto draw = [&](uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 16) % below;
  };
  const auto word = [&](uint32_t size) {
    std::string text;
    for (uint32_t i = 0; i < size; ++i) text += static_cast<char>('a' + draw(2));
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    UnigramOptions options{.texts = {"?", "a", "b"}, .scores = {0, -9, -9}, .unk_id = 0};
    std::vector<std::string> pieces = {"?", "a", "b"};
    for (int i = 0; i < 12; ++i) {
      options.texts.push_back(word(1 + draw(6)));
      options.scores.push_back(-static_cast<double>(draw(8)));
      pieces.push_back((draw(2) == 0 ? "" : "##") + word(1 + draw(6)));
    }
    const std::string text = word(30);
    EXPECT_EQ(ids_of(UnigramModel(options), text), best_path(options, text)) << text;
    const WordPieceModel words({.texts = pieces, .unk = "?"});
    EXPECT_EQ(ids_of(words, text), longest_first(pieces, text)) << text;
  }
}

TEST(PieceCache, ReturnsTheResultOfTheModel) {
  const UnigramModel model(small_unigram());
  const BpeModel other(small_bpe());
  PieceCache cache;
  uint32_t state = 7;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    const uint32_t size = i % 30;
    for (uint32_t k = 0; k < size; ++k) {
      state = state * 1664525 + 1013904223;
      text += static_cast<char>('a' + (state >> 24) % (1 + size / 4));
    }
    Ids ids{-7};
    std::vector<Piece> expected;
    cache.ids(1, model, text, ids);
    model.encode(text, expected);
    ASSERT_EQ(ids.size(), expected.size() + 1);
    for (size_t k = 0; k < expected.size(); ++k) ASSERT_EQ(ids[k + 1], expected[k].id);
  }
  Ids ids;
  cache.ids(2, other, "abc", ids);
  EXPECT_EQ(ids, Ids({5}));
}

}  // namespace
}  // namespace fovea::text
