// Inverted indexes: sparse vectors and words.

#include <cmath>

#include "fovea/core/random.h"
#include "search/word_index.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

using PassageTexts = std::vector<std::string_view>;

SparseVectors random_rows(int64_t count, int64_t width) {
  SparseVectors rows;
  rows.count = count;
  rows.width = width;
  Random random(5, Stream::init);
  for (int64_t i = 0; i < count; ++i) {
    for (int32_t v = 0; v < width; ++v) {
      if (random.uniform() > 0.2f) continue;
      rows.indices.push_back(v);
      rows.values.push_back(random.uniform() + 0.1f);
    }
    rows.starts.push_back(std::ssize(rows.indices));
  }
  return rows;
}

TEST(PostingLists, FindTheLargestProductsExactly) {
  const SparseVectors rows = random_rows(60, 40);
  const PostingLists lists(rows);
  EXPECT_EQ(lists.terms(), 40);
  const std::vector<TermWeight> query = {{3, 2.0f}, {17, 0.5f}, {39, 1.0f}};
  std::vector<ScoredPassage> wanted;
  for (int64_t i = 0; i < rows.count; ++i) {
    double score = 0;
    for (auto at = static_cast<size_t>(rows.starts[static_cast<size_t>(i)]);
         at < static_cast<size_t>(rows.starts[static_cast<size_t>(i) + 1]); ++at)
      for (const auto& [term, weight] : query)
        if (rows.indices[at] == term) score += double{weight} * double{rows.values[at]};
    if (score > 0) wanted.push_back({i, static_cast<float>(score)});
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  const auto found = best_of(lists.matches(query), 1000);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].number, wanted[i].number);
    EXPECT_EQ(found[i].score, wanted[i].score);
  }
  EXPECT_EQ(best_of(lists.matches(query), 2).size(), 2u);
  EXPECT_TRUE(lists.matches({}).empty());
  const std::vector<TermWeight> outside = {{-1, 1.0f}, {40, 1.0f}};
  EXPECT_TRUE(lists.matches(outside).empty());
  const SparseVectors again = lists.rows();
  EXPECT_EQ(again.indices, rows.indices);
  EXPECT_EQ(again.values, rows.values);
  EXPECT_EQ(again.starts, rows.starts);
}

TEST(PostingLists, RefuseInvalidFiles) {
  const TemporaryFolder folder;
  const std::string path = folder / "lists.safetensors";
  const auto whole = PostingLists(random_rows(6, 4)).tensors();
  const auto open = [&](const std::map<std::string, Tensor>& tensors) {
    write_safetensors(path, tensors);
    return PostingLists(SafeTensors(path), path, 4, 6);
  };
  EXPECT_EQ(open(whole).terms(), 4);
  const auto refused = [&](const char* name, const Tensor& value) {
    auto tensors = whole;
    tensors[name] = value;
    expect_error(ErrorKind::BadFile, {path}, [&] { open(tensors); });
  };
  const int64_t size = whole.at("passages").size();
  refused("starts", zeros({5}, DType::i64));
  refused("starts", zeros({4}, DType::i64));
  refused("starts", zeros({5}, DType::i32));
  refused("weights", zeros({size + 1}));
  refused("weights", full({size}, std::nan("")));
  refused("weights", zeros({size, 1}));
  const Tensor outside = copy(whole.at("passages"));
  outside.data_as<int32_t>()[size - 1] = 6;
  refused("passages", outside);
  outside.data_as<int32_t>()[size - 1] = -1;
  refused("passages", outside);
  auto missing = whole;
  missing.erase("passages");
  expect_error(ErrorKind::BadFile, {path}, [&] { open(missing); });
}

TEST(Words, AreRunsOfLettersAndDigitsInLowerCase) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_in("The FOX's 2nd eye-ball, naïve ÉTÉ!"),
            (Words{"the", "fox", "s", "2nd", "eye", "ball", "naïve", "été"}));
  EXPECT_EQ(words_in("日本語 テスト。abc"), (Words{"日", "本", "語", "テ", "ス", "ト", "abc"}));
  EXPECT_EQ(words_in("“quoted” — … $"), Words{"quoted"});
  EXPECT_TRUE(words_in("").empty());
  EXPECT_EQ(words_in("a\xff"
                     "b"),
            (Words{"a", "b"}));
}

// A part in which all rows are searched, numbered from `first` on.
struct NumberedWords {
  WordIndex words;
  std::vector<int32_t> numbers;

  NumberedWords(const PassageTexts& texts, int32_t first) : words(texts) {
    for (size_t i = 0; i < texts.size(); ++i) numbers.push_back(first + static_cast<int32_t>(i));
  }
  WordPart part() const { return {&words, numbers, numbers}; }
};

std::vector<ScoredPassage> best_words(const NumberedWords& words, const char* query,
                                      int64_t count) {
  const WordPart parts[] = {words.part()};
  return best_by_words(parts, query, count);
}

TEST(WordIndex, ComputesBm25) {
  const PassageTexts passages = {"the fox sees the bird", "the bird sleeps", "night falls", ""};
  const NumberedWords index(passages, 0);
  // N = 4, mean length 10 / 4; "fox" is in 1 passage, "bird" in 2.
  const auto weight = [](double n, double tf, double length) {
    const double norm = 1.2 * (1 - 0.75 + 0.75 * length / 2.5);
    return std::log(1 + (4 - n + 0.5) / (n + 0.5)) * tf * 2.2 / (tf + norm);
  };
  const auto found = best_words(index, "Fox BIRD dragon", 10);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].number, 0);
  EXPECT_NEAR(found[0].score, weight(1, 1, 5) + weight(2, 1, 5), 1e-6);
  EXPECT_EQ(found[1].number, 1);
  EXPECT_NEAR(found[1].score, weight(2, 1, 3), 1e-6);
  // A word that occurs twice in the query counts twice.
  EXPECT_NEAR(best_words(index, "the the", 1)[0].score, 2 * weight(2, 2, 5), 1e-6);
  EXPECT_TRUE(best_words(index, "dragon", 10).empty());
  EXPECT_TRUE(best_words(NumberedWords({"", "..."}, 0), "x", 3).empty());
}

TEST(WordIndex, ScoresDoNotDependOnTheParts) {
  const PassageTexts all = {"a b c", "b c d d", "the a", "c", "b b b e", "e f a"};
  const NumberedWords whole(all, 0), one({all[0], all[1]}, 0),
      other({all[2], all[3], all[4], all[5]}, 2);
  // A row that is no longer in the index, and one that is not searched.
  NumberedWords more({"a deleted text with a b", all[0]}, -1);
  more.numbers = {-1, -1};
  std::vector<int32_t> without_2 = other.numbers;
  without_2[0] = -1;
  const WordPart parts[] = {one.part(), more.part(), {&other.words, other.numbers, without_2}};
  for (const char* query : {"a b", "c e d", "f", "a a the"}) {
    std::vector<ScoredPassage> wanted = best_words(whole, query, 10);
    std::erase_if(wanted, [](const ScoredPassage& p) { return p.number == 2; });
    const auto found = best_by_words(parts, query, 10);
    ASSERT_EQ(found.size(), wanted.size()) << query;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].number, wanted[i].number) << query;
      EXPECT_EQ(found[i].score, wanted[i].score) << query;
    }
  }
}

TEST(WordIndex, RoundTripsAndRefusesInvalidFiles) {
  const TemporaryFolder folder;
  const std::string path = folder / "words.safetensors";
  const auto whole = WordIndex(PassageTexts{"b a", "a c"}).tensors();
  const auto open = [&](const std::map<std::string, Tensor>& tensors) {
    write_safetensors(path, tensors);
    return WordIndex(SafeTensors(path), path, 2);
  };
  const WordIndex index = open(whole);
  ASSERT_EQ(index.of("c").rows.size(), 1u);
  EXPECT_EQ(index.of("c").rows[0], 1);
  EXPECT_EQ(index.of("a").rows.size(), 2u);
  EXPECT_TRUE(index.of("").rows.empty());
  EXPECT_TRUE(index.of("d").rows.empty());
  const auto refused = [&](const char* name, const Tensor& value, const char* why) {
    auto tensors = whole;
    tensors[name] = value;
    expect_error(ErrorKind::BadFile, {path, why}, [&] { open(tensors); });
  };
  const auto words = [](const std::string& text) {
    const Tensor bytes = empty({std::ssize(text)}, DType::u8);
    std::ranges::copy(text, bytes.data_as<char>());
    return bytes;
  };
  const auto changed = [&](const char* name, int64_t at, int32_t value) {
    const Tensor other = copy(whole.at(name));
    other.data_as<int32_t>()[at] = value;
    return other;
  };
  refused("words", words("a\nc\nb\n"), "word 3");
  refused("words", words("a\nb\nc"), "its last word does not end");
  refused("words", words("a\nb\n"), "another number of words");
  refused("starts", zeros({4}, DType::i32), "another type");
  refused("starts", zeros({4}, DType::i64), "do not follow");
  refused("rows", changed("rows", 1, 2), "does not exist");
  refused("rows", changed("rows", 1, -1), "does not exist");
  refused("counts", changed("counts", 0, 0), "not positive");
  refused("counts", zeros({3}, DType::i32), "different numbers");
  refused("lengths", changed("lengths", 0, -1), "negative");
  refused("lengths", zeros({3}, DType::i32), "another number of texts");
}

}  // namespace
}  // namespace fovea::infer
