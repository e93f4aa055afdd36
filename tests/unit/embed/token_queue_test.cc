// Texts of many callers share batches; each caller receives the results that it would receive
// alone.

#include "embed/token_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <new>
#include <optional>

#include "support/expect_error.h"

namespace fovea::infer {
namespace {

using Rows = std::vector<float>;

TokenizedText text_of(int32_t first, size_t length) {
  TokenizedText text;
  for (size_t i = 0; i < length; ++i) text.ids.push_back(first + static_cast<int32_t>(i));
  return text;
}

// A queue of a model that returns the first token and the length of each text, and records its
// batches. The model computes only when the test permits it.
class TokenQueueTest : public testing::Test {
 protected:
  Tensor model(const TokenBatch& batch, int64_t group) {
    const Tensor& ids = batch.sequence.ids;
    const Tensor y = empty({ids.dim(0), 2});
    std::unique_lock lock(mutex_);
    open_.wait(lock, [this] { return let_; });
    lengths_.emplace_back();
    groups_.push_back(group);
    for (int64_t b = 0; b < ids.dim(0); ++b) {
      const int32_t* const row = ids.data_as<int32_t>() + b * ids.dim(1);
      const Interval valid = batch.valid[static_cast<size_t>(b)];
      if (*row == kPoison) throw std::runtime_error("poison");
      if (*row == kTooLarge) throw std::bad_alloc();
      if (*row == kInvalid) throw Error(ErrorKind::InvalidArgument, "invalid");
      y.data_as<float>()[2 * b] = static_cast<float>(*row);
      y.data_as<float>()[2 * b + 1] = static_cast<float>(valid.end);
      lengths_.back().push_back(valid.end);
    }
    return y;
  }
  void let(bool let) {
    {
      const std::lock_guard lock(mutex_);
      let_ = let;
    }
    open_.notify_all();
  }
  std::future<Rows> add(std::vector<TokenizedText> texts, int64_t group = 0) {
    auto promise = std::make_shared<std::promise<Rows>>();
    last_ = queue().add(std::move(texts), group, [promise](Rows rows, const Error* error) {
      if (error != nullptr) {
        promise->set_exception(std::make_exception_ptr(*error));
      } else {
        promise->set_value(std::move(rows));
      }
    });
    return promise->get_future();
  }
  TokenQueue& queue() {
    if (!queue_) {
      queue_.emplace([this](const TokenBatch& batch, int64_t group) { return model(batch, group); },
                     2, options_);
    }
    return *queue_;
  }
  // Adds a text and waits until its batch starts, so that later texts are not part of this batch.
  std::future<Rows> occupy() {
    std::future<Rows> first = add({text_of(1, 1)});
    while (queue().status().batches == 0) std::this_thread::yield();
    return first;
  }

  static constexpr int32_t kPoison = 666, kTooLarge = 667, kInvalid = 668;
  QueueOptions options_;
  std::mutex mutex_;
  std::condition_variable open_;
  bool let_ = true;
  std::vector<std::vector<int64_t>> lengths_;
  std::vector<int64_t> groups_;
  uint64_t last_ = 0;
  std::optional<TokenQueue> queue_;  // destroyed first: its thread uses the other members
};

TEST_F(TokenQueueTest, ReturnsItsRowsToEachCaller) {
  std::vector<std::future<Rows>> all;
  for (int32_t caller = 0; caller < 50; ++caller) {
    std::vector<TokenizedText> texts;
    for (int32_t i = 0; i < caller % 5; ++i) {
      texts.push_back(text_of(10 * caller + i, static_cast<size_t>((7 * caller + 3 * i) % 40)));
    }
    all.push_back(add(texts, caller % 2));
  }
  for (int32_t caller = 0; caller < 50; ++caller) {
    Rows expected;
    for (int32_t i = 0; i < caller % 5; ++i) {
      const int32_t length = (7 * caller + 3 * i) % 40;
      expected.push_back(length > 0 ? static_cast<float>(10 * caller + i) : 0.0f);
      expected.push_back(static_cast<float>(length));
    }
    EXPECT_EQ(all[static_cast<size_t>(caller)].get(), expected);
  }
  EXPECT_EQ(queue().status().waiting, 0);
  EXPECT_EQ(queue().status().waiting_tokens, 0);
  EXPECT_EQ(queue().status().requests, 50);
}

TEST_F(TokenQueueTest, BatchesWaitingTextsByLength) {
  options_.batch_tokens = 400;
  let(false);
  auto first = occupy();
  std::vector<std::future<Rows>> all;
  for (const size_t length : {100, 50, 99, 52, 101, 48}) all.push_back(add({text_of(7, length)}));
  let(true);
  for (auto& each : all) each.get();
  ASSERT_EQ(lengths_.size(), 3u);
  EXPECT_EQ(lengths_[1], (std::vector<int64_t>{99, 100, 101}));
  EXPECT_EQ(lengths_[2], (std::vector<int64_t>{48, 50, 52}));
}

TEST_F(TokenQueueTest, LimitsTheTokensAndGroupsOfABatch) {
  options_.batch_tokens = 200;
  let(false);
  auto first = occupy();
  std::vector<std::future<Rows>> all;
  for (int i = 0; i < 10; ++i) all.push_back(add({text_of(7, 50)}, i % 2));
  all.push_back(add({text_of(8, 1000)}));
  let(true);
  for (auto& each : all) each.get();
  for (const auto& batch : lengths_) {
    EXPECT_TRUE(batch.size() == 1 || batch.size() * 50 <= 200);
  }
  EXPECT_EQ(lengths_.size(), 1u + 4u + 1u) << "first text, two per group, long text";
}

TEST_F(TokenQueueTest, ServesCallersFairly) {
  options_.batch_tokens = 100;
  let(false);
  auto first = occupy();
  auto many = add(std::vector<TokenizedText>(50, text_of(1, 100)));
  auto one = add({text_of(2, 10)});
  let(true);
  one.get();
  many.get();
  const auto its_batch = std::find(lengths_.begin(), lengths_.end(), std::vector<int64_t>{10});
  EXPECT_LE(its_batch - lengths_.begin(), 3);
}

TEST_F(TokenQueueTest, RefusesTooManyWaitingTexts) {
  options_.most_waiting = 2;
  let(false);
  auto first = occupy();
  auto second = add({text_of(1, 3)});
  EXPECT_TRUE(queue().full());
  add({text_of(1, 3)});
  EXPECT_EQ(last_, 0u);
  let(true);
  EXPECT_EQ(second.get(), (Rows{1, 3}));
}

TEST_F(TokenQueueTest, RefusesTooManyWaitingTokens) {
  options_.most_tokens = 100;
  let(false);
  auto first = occupy();
  auto second = add({text_of(1, 101)});
  EXPECT_NE(last_, 0u) << "a text above the limit is accepted while the queue is empty";
  add({text_of(1, 1)});
  EXPECT_EQ(last_, 0u);
  let(true);
  second.get();
  EXPECT_EQ(add({text_of(1, 1)}).get(), (Rows{1, 1}));
}

TEST_F(TokenQueueTest, SkipsCancelledTexts) {
  let(false);
  auto first = occupy();
  auto second = add({text_of(1, 30), text_of(2, 31)});
  queue().cancel(last_);
  queue().cancel(last_);
  auto third = add({text_of(3, 30)});
  EXPECT_EQ(queue().status().waiting_tokens, 30);
  let(true);
  EXPECT_EQ(third.get(), (Rows{3, 30}));
  EXPECT_EQ(lengths_.back(), std::vector<int64_t>{30});
  EXPECT_THROW(second.get(), std::future_error) << "its promise is destroyed";
}

TEST_F(TokenQueueTest, FailsOneBatchOnAnError) {
  let(false);
  auto first = occupy();
  auto poisoned = add({text_of(kPoison, 300)});
  auto healthy = add({text_of(4, 20)});
  let(true);
  EXPECT_THROW(poisoned.get(), std::runtime_error);
  EXPECT_EQ(healthy.get(), (Rows{4, 20}));
}

TEST_F(TokenQueueTest, PassesTheKindOfAnError) {
  const auto expect_kind = [&](ErrorKind kind, int32_t token, const char* text) {
    expect_error(kind, {text}, [&] { add({text_of(token, 5)}).get(); });
  };
  expect_kind(ErrorKind::InvalidArgument, kInvalid, "invalid");
  expect_kind(ErrorKind::OutOfMemory, kTooLarge, "no memory");
  expect_kind(ErrorKind::Internal, kPoison, "poison");
}

TEST_F(TokenQueueTest, DropsWaitingTextsOnDestruction) {
  let(false);
  auto first = occupy();
  auto second = add({text_of(1, 30)});
  std::thread end([this] { queue_.reset(); });
  let(true);
  end.join();
  EXPECT_EQ(second.wait_for(std::chrono::seconds(0)), std::future_status::ready)
      << "computed or dropped";
}

}  // namespace
}  // namespace fovea::infer
