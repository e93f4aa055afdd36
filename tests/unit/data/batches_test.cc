#include "data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "support/expect_error.h"

namespace fovea::train {
namespace {

using Ids = std::vector<int32_t>;

// The id of each token is its position.
class Numbers {
 public:
  explicit Numbers(int64_t count) : ids_(static_cast<size_t>(count)) {
    std::iota(ids_.begin(), ids_.end(), 0);
  }
  TokenSpan span() const { return {ids_.data(), 4, static_cast<int64_t>(ids_.size()), 0}; }
  TextMixture text() const { return {{span(), 1}}; }

 private:
  Ids ids_;
};

struct Batch {
  Ids ids, targets;
};

template <class Source>
Batch fill(const Source& source, int64_t step, int64_t batch, int64_t context) {
  Batch filled{Ids(static_cast<size_t>(batch * context)),
               Ids(static_cast<size_t>(batch * context))};
  source.fill(step, batch, filled.ids.data(), filled.targets.data());
  return filled;
}

TEST(Batches, VisitEachWindowOncePerEpoch) {
  constexpr int64_t context = 4;
  for (const int64_t windows : {1, 2, 3, 5, 50}) {
    const Numbers numbers((windows + 1) * context + 1);
    const Batches batches(numbers.text(), context, 42);
    ASSERT_EQ(batches.windows(), windows);
    for (int64_t epoch = 0; epoch < 20; ++epoch) {
      std::set<int32_t> starts;
      for (int64_t i = 0; i < windows; ++i) {
        const Batch sample = fill(batches, epoch * windows + i, 1, context);
        starts.insert(sample.ids[0]);
        for (int32_t t = 0; t < context; ++t) {
          ASSERT_EQ(sample.ids[static_cast<size_t>(t)], sample.ids[0] + t);
          ASSERT_EQ(sample.targets[static_cast<size_t>(t)], sample.ids[0] + t + 1);
        }
      }
      ASSERT_EQ(static_cast<int64_t>(starts.size()), windows);
      EXPECT_EQ(*starts.rbegin() - *starts.begin(), (windows - 1) * context);  // one phase
    }
  }
}

TEST(Batches, DoNotDependOnHowAStepIsSplit) {
  constexpr int64_t context = 3, samples = 240;  // several epochs of 32 windows
  const Numbers numbers(100);
  const Batches batches(numbers.text(), context, 7);
  const Batch all = fill(batches, 0, samples, context);
  for (const int64_t batch : {1, 2, 5, 48}) {
    Ids ids;
    for (int64_t step = 0; step < samples / batch; ++step) {
      const Batch part = fill(batches, step, batch, context);
      ids.insert(ids.end(), part.ids.begin(), part.ids.end());
    }
    EXPECT_EQ(ids, all.ids) << batch;
  }
}

TEST(Batches, DependOnTheSeed) {
  const Numbers numbers(1000);
  const auto first = [&](uint64_t seed) {
    return fill(Batches(numbers.text(), 8, seed), 0, 16, 8).ids;
  };
  EXPECT_EQ(first(1), first(1));
  EXPECT_NE(first(1), first(2));
}

TEST(Batches, PredictEveryTokenButTheFirst) {
  for (const int64_t count : {5, 6, 9, 10, 13, 16, 17, 100}) {
    const Numbers numbers(count);
    const Batches batches(numbers.text(), 4, 3);
    std::set<int32_t> targets;
    for (int64_t step = 0; step < 400; ++step) {
      const Batch batch = fill(batches, step, 8, 4);
      targets.insert(batch.targets.begin(), batch.targets.end());
    }
    EXPECT_EQ(static_cast<int64_t>(targets.size()), count - 1) << count;  // all but the first token
  }
}

TEST(Batches, SelectAllPhasesEquallyOften) {
  const Numbers numbers(9);  // one window with a context of 4, phases 0 to 4
  const Batches batches(numbers.text(), 4, 5);
  ASSERT_EQ(batches.windows(), 1);
  std::map<int32_t, int> count;
  for (int64_t step = 0; step < 5000; ++step) ++count[fill(batches, step, 1, 4).ids[0]];
  ASSERT_EQ(count.size(), 5u);
  for (const auto& [phase, hits] : count) EXPECT_NEAR(hits, 1000, 120) << phase;  // 4 sigma
}

TEST(Batches, RefuseATextThatIsTooShort) {
  const Numbers numbers(900);
  expect_error(ErrorKind::InvalidArgument,
               {"context: 1,024 is too long: the text has 900 tokens for training; expected at "
                "least context + 1 = 1,025"},
               [&] { Batches(numbers.text(), 1024, 0); });
  expect_error(ErrorKind::InvalidArgument, {"context: 900", "900 tokens for validation", "= 901"},
               [&] { ValidationBatches(numbers.text(), 900, 1); });
  expect_error(ErrorKind::InvalidArgument, {"context: is 0; expected at least 1"},
               [&] { Batches(numbers.text(), 0, 0); });
  EXPECT_EQ(Batches(numbers.text(), 899, 0).windows(), 1);
}

// The order of a text that is shuffled as a whole, which recorded runs have.
TEST(Batches, KeepTheirOrder) {
  const Numbers numbers(33);
  const Batches batches(numbers.text(), 4, 42);
  Ids starts;
  for (int64_t i = 0; i < 2 * batches.windows(); ++i)
    starts.push_back(fill(batches, i, 1, 4).ids[0]);
  EXPECT_EQ(starts, (Ids{17, 21, 5, 13, 1, 9, 25, 4, 24, 20, 12, 16, 8, 0}));
}

TEST(Batches, OfALongTextStayClose) {
  const Numbers numbers(64001);
  const Batches batches(numbers.text(), 4, 42, false, 4000);  // 16 parts of about 1000 windows
  ASSERT_EQ(batches.windows(), 15999);
  std::set<int32_t> starts, blocks;
  for (int64_t i = 0; i < batches.windows(); ++i) {
    const int32_t start = fill(batches, i, 1, 4).ids[0];
    starts.insert(start);
    if (i < 900) blocks.insert(start / 250);  // a block has 62 windows
  }
  EXPECT_EQ(std::ssize(starts), batches.windows());  // each once
  EXPECT_LE(blocks.size(), 33u);                     // of 256: each block may lie in two of these
}

TEST(Batches, MixTextsByTheirWeights) {
  const Numbers small(401), large(1201);
  Ids moved(801);
  std::iota(moved.begin(), moved.end(), 10000);
  const TextMixture texts = {{large.span(), 0.5}, {{moved.data(), 4, 801, 0}, 2}};
  for (const int64_t shuffled : {int64_t{1} << 28, int64_t{200}}) {
    const Batches batches(texts, 4, 3, false, shuffled);
    ASSERT_EQ(batches.windows(), 150 + 2 * 199);  // (299 windows) / 2, rounded
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::map<int32_t, int> seen;
      int64_t of_first = 0, early = 0;
      for (int64_t i = 0; i < batches.windows(); ++i) {
        const int32_t start = fill(batches, epoch * batches.windows() + i, 1, 4).ids[0];
        ++seen[start];
        of_first += start < 10000;
        early += start < 10000 && i < batches.windows() / 2;
      }
      EXPECT_EQ(of_first, 150);
      EXPECT_NEAR(static_cast<double>(early), 75, 25);
      EXPECT_EQ(seen.size(), 150u + 199u);
      for (const auto& [start, times] : seen) EXPECT_EQ(times, start < 10000 ? 1 : 2);
    }
  }
  EXPECT_EQ(fill(Batches(texts, 4, 3), 0, 40, 4).ids, fill(Batches(texts, 4, 3), 0, 40, 4).ids);
  expect_error(ErrorKind::InvalidArgument, {"an epoch contains no text"},
               [&] { Batches({{small.span(), 0.001}}, 4, 3); });
}

TEST(ValidationBatches, CoverTheEndsOfAllTexts) {
  const Numbers one(41), none(3), other(21);
  const TextMixture texts = {{one.span(), 5}, {none.span(), 1}, {other.span(), 0.1}};
  const ValidationBatches batches(texts, 10, 100);
  ASSERT_EQ(batches.windows(), 4 + 0 + 2);
  const Batch all = fill(batches, 0, 6, 10);
  Ids starts;
  for (size_t i = 0; i < 6; ++i) starts.push_back(all.ids[i * 10]);
  EXPECT_EQ(starts, (Ids{0, 10, 20, 30, 0, 10}));
}

TEST(ValidationBatches, CoverTheHeldOutPartEvenly) {
  const Numbers numbers(101);
  const ValidationBatches few(numbers.text(), 10, 4);
  ASSERT_EQ(few.windows(), 4);
  const Batch batch = fill(few, 0, 4, 10);
  EXPECT_EQ((Ids{batch.ids[0], batch.ids[10], batch.ids[20], batch.ids[30]}), (Ids{0, 20, 50, 70}));
  EXPECT_EQ(batch.targets[39], 80);

  const ValidationBatches all(numbers.text(), 10, 1000);
  ASSERT_EQ(all.windows(), 10);
  const Batch whole = fill(all, 0, 10, 10);
  EXPECT_EQ(whole.targets.back(), 100);
  EXPECT_EQ(fill(all, 3, 2, 10).ids, Ids(whole.ids.begin() + 30, whole.ids.begin() + 50));
}

}  // namespace
}  // namespace fovea::train
