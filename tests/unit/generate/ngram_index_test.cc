#include "generate/ngram_index.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fovea/core/random.h"

namespace fovea::infer {
namespace {

using Ids = std::vector<int32_t>;

Ids proposed(const Ids& ids, int64_t count) {
  NgramIndex index;
  const auto found = index.find(ids);
  return found ? continuation(ids, found->next, count) : Ids{};
}

// Returns the latest earlier occurrence of the last n tokens, found by comparing all places.
int64_t latest(const Ids& ids, int64_t n) {
  for (int64_t next = std::ssize(ids) - 1; next >= n; --next)
    if (std::equal(ids.end() - n, ids.end(), ids.begin() + (next - n))) return next;
  return 0;
}

TEST(NgramIndexes, ContinueAnEarlierOccurrence) {
  EXPECT_EQ(proposed({5, 6, 7, 8, 9, 5, 6, 7}, 2), (Ids{8, 9}));
  EXPECT_EQ(proposed({6, 7, 1, 5, 6, 7, 2, 6, 7}, 1), (Ids{2}));           // the latest occurrence
  EXPECT_EQ(proposed({5, 6, 7, 1, 9, 6, 7, 2, 5, 6, 7}, 2), (Ids{1, 9}));  // the longest one
  EXPECT_TRUE(proposed({1, 2, 3, 4}, 3).empty());
  EXPECT_TRUE(proposed({1, 2, 1}, 3).empty());  // one equal token is not enough
  for (const Ids& ids : {Ids{}, Ids{1}, Ids{1, 1}}) EXPECT_TRUE(proposed(ids, 3).empty());
}

TEST(NgramIndexes, ContinueARepetitionBeyondTheEnd) {
  EXPECT_EQ(proposed({5, 6, 7, 8, 9, 5, 6, 7}, 9), (Ids{8, 9, 5, 6, 7, 8, 9, 5, 6}));
  EXPECT_EQ(proposed({3, 3, 3}, 4), (Ids{3, 3, 3, 3}));
}

// Texts of few and of many different tokens, which grow by one or by several tokens.
TEST(NgramIndexes, FindWhatASearchFinds) {
  Random random(3, Stream::init);
  for (const uint32_t vocabulary : {2u, 11u, 50'000u}) {
    for (const uint32_t most : {1u, 7u}) {
      NgramIndex index;
      Ids ids;
      int64_t searched = 0, longest = 0;
      while (ids.size() < 3000) {
        for (uint32_t i = 0; i < 1 + random.word() % most; ++i)
          ids.push_back(ids.size() > 100 && random.word() % 4 > 0
                            ? ids[ids.size() - 97]
                            : static_cast<int32_t>(random.word() % vocabulary));
        const auto found = index.find(ids);
        int64_t n = NgramIndex::kLongest;
        while (n >= NgramIndex::kShortest && latest(ids, n) == 0) --n;
        if (n < NgramIndex::kShortest) {
          EXPECT_FALSE(found);
          continue;
        }
        ++searched;
        longest += found && found->length == n;
        if (found) {
          EXPECT_EQ(found->next, latest(ids, found->length));
        }
      }
      // Equal hashes hide few sequences.
      EXPECT_GT(longest * 10, searched * 8) << vocabulary;
    }
  }
}

TEST(NgramIndexes, ForgetAClearedText) {
  NgramIndex index;
  Ids ids;
  for (int32_t i = 0; i < 500; ++i) ids.push_back(i % 7);
  EXPECT_TRUE(index.find(ids));
  index.clear();
  EXPECT_FALSE(index.find({1, 2, 3, 4}));
  EXPECT_EQ(index.find({1, 2, 3, 1, 2})->next, 2);
}

}  // namespace
}  // namespace fovea::infer
