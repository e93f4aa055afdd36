// Inverted indexes: sparse vectors and words.

#include <cmath>

#include "fovea/core/random.h"
#include "search/index_files.h"
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
  const auto found = lists.best(query, 1000);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].number, wanted[i].number);
    EXPECT_EQ(found[i].score, wanted[i].score);
  }
  EXPECT_EQ(lists.best(query, 2).size(), 2u);
  EXPECT_TRUE(lists.best({}, 5).empty());
  const std::vector<TermWeight> outside = {{-1, 1.0f}, {40, 1.0f}};
  EXPECT_TRUE(lists.best(outside, 5).empty());
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

TEST(WordIndex, ComputesBm25) {
  const PassageTexts passages = {"the fox sees the bird", "the bird sleeps", "night falls", ""};
  const WordIndex index(passages);
  // N = 4, mean length 10 / 4; "fox" is in 1 passage, "bird" in 2.
  const auto weight = [](double n, double tf, double length) {
    const double norm = 1.2 * (1 - 0.75 + 0.75 * length / 2.5);
    return std::log(1 + (4 - n + 0.5) / (n + 0.5)) * tf * 2.2 / (tf + norm);
  };
  const auto found = index.best("Fox BIRD dragon", 10);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].number, 0);
  EXPECT_NEAR(found[0].score, weight(1, 1, 5) + weight(2, 1, 5), 1e-6);
  EXPECT_EQ(found[1].number, 1);
  EXPECT_NEAR(found[1].score, weight(2, 1, 3), 1e-6);
  // A word that occurs twice in the query counts twice.
  EXPECT_NEAR(index.best("the the", 1)[0].score, 2 * weight(2, 2, 5), 1e-6);
  EXPECT_TRUE(index.best("dragon", 10).empty());
  EXPECT_TRUE(WordIndex(PassageTexts{"", "..."}).best("x", 3).empty());
}

TEST(WordIndex, RoundTripsAndRefusesUnsortedWords) {
  const TemporaryFolder folder;
  const std::string path = folder / "words.safetensors";
  auto tensors = WordIndex(PassageTexts{"b a", "a c"}).tensors();
  write_safetensors(path, tensors);
  const WordIndex index(SafeTensors(path), path, 2);
  EXPECT_EQ(index.best("c", 5).at(0).number, 1);
  const std::string text = "a\nc\nb\n";
  const Tensor words = empty({std::ssize(text)}, DType::u8);
  std::ranges::copy(text, words.data_as<char>());
  tensors["words"] = words;
  write_safetensors(path, tensors);
  expect_error(ErrorKind::BadFile, {path, "word 3"},
               [&] { WordIndex(SafeTensors(path), path, 2); });
}

TEST(SparseIndex, RoundTrips) {
  const TemporaryFolder folder;
  const std::string path = folder / "index";
  const std::vector<IndexedPassage> passages = {{"a", 1, 1, "x"}, {"a", 2, 2, "y"}};
  const SparseVectors rows = random_rows(2, 30);
  const IndexSettings settings = {"/texts", "/model", "0", 30, Similarity::dot, VectorKind::sparse};
  write_index(path, {settings, passages, PostingLists(rows), WordIndex(PassageTexts{"x", "y"})});
  const IndexFiles index = read_index(path);
  EXPECT_EQ(index.settings.kind, VectorKind::sparse);
  EXPECT_EQ(index.sparse().rows().values, rows.values);
  std::string bytes = read_file(path + "/sparse.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(path + "/sparse.safetensors", bytes);
  expect_error(ErrorKind::BadFile, {"sparse.safetensors", "damaged"}, [&] { read_index(path); });
}

}  // namespace
}  // namespace fovea::infer
