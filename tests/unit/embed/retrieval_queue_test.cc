// Requests of many callers give the vectors of separate calls, and an error affects only the
// request at fault.

#include "fovea/infer/retrieval_queue.h"

#include <future>

#include "support/expect_error.h"
#include "support/golden_folder.h"

namespace fovea::infer {
namespace {

template <class Result>
struct Answer {
  std::promise<std::pair<Result, std::string>> promise;
  auto done() {
    return [this](const Result* result, const Error* error) {
      promise.set_value({result != nullptr ? *result : Result{}, error ? error->what() : ""});
    };
  }
  std::pair<Result, std::string> get() { return promise.get_future().get(); }
};

class RetrievalQueueTest : public testing::Test {
 protected:
  const std::vector<std::string> texts_ = GoldenFolder("sparse_model").texts();
  const SparseEmbedder sparse_ = SparseEmbedder::open("tests/goldens/sparse_model");
  const MultiVectorEmbedder multiple_ =
      MultiVectorEmbedder::open("tests/goldens/multi_vector_model");
};

TEST_F(RetrievalQueueTest, GivesEachCallerItsSparseVectors) {
  SparseQueue queue(sparse_);
  std::vector<Answer<SparseVectors>> answers(60);
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::vector<std::string> asked = {texts_[i % 7], texts_[(i + 3) % 7]};
    const TextRole role = i % 2 == 0 ? TextRole::document : TextRole::query;
    ASSERT_GT(queue.submit(asked, role, {}, answers[i].done()), 0u);
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto [found, error] = answers[i].get();
    EXPECT_EQ(error, "");
    const SparseVectors wanted = sparse_.embed({texts_[i % 7], texts_[(i + 3) % 7]},
                                               i % 2 == 0 ? TextRole::document : TextRole::query);
    EXPECT_EQ(found.indices, wanted.indices);
    EXPECT_EQ(found.values, wanted.values);
    EXPECT_EQ(found.starts, wanted.starts);
    EXPECT_EQ(found.tokens, wanted.tokens);
  }
  const QueueStatus status = queue.status();
  EXPECT_EQ(status.requests, 60);
  EXPECT_LE(status.batches, 60);
}

TEST_F(RetrievalQueueTest, FailsOnlyTheRequestAtFault) {
  SparseQueue queue(sparse_);
  EmbedOptions options;
  options.truncate = false;
  std::vector<Answer<SparseVectors>> answers(20);
  for (size_t i = 0; i < answers.size(); ++i) {
    if (i % 5 == 0)
      expect_error(ErrorKind::InvalidArgument, {"text 1: has"}, [&] {
        queue.submit({texts_[5]}, TextRole::document, options, answers[i].done());
      });
    else
      queue.submit({texts_[0]}, TextRole::document, options, answers[i].done());
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    if (i % 5 == 0) continue;
    const auto [found, error] = answers[i].get();
    EXPECT_EQ(error, "");
    EXPECT_EQ(found.count, 1);
  }
}

TEST_F(RetrievalQueueTest, ComputesVectorsAndScoresOfTokens) {
  MultiVectorQueue queue(multiple_);
  Answer<MultiVectors> vectors;
  Answer<RerankScores> scores;
  queue.submit(texts_, TextRole::query, {}, vectors.done());
  queue.submit_scores(texts_[0], texts_, {}, scores.done());
  EXPECT_EQ(vectors.get().first.values, multiple_.embed(texts_, TextRole::query).values);
  const RerankScores found = scores.get().first;
  EXPECT_EQ(found.values, multiple_.score(texts_[0], texts_));
  EXPECT_GT(found.tokens, 0);
}

TEST_F(RetrievalQueueTest, RefusesRequestsWhenFull) {
  SparseQueue queue(sparse_, {.most_waiting = 0});
  EXPECT_EQ(queue.submit({"fox"}, TextRole::document, {}, {}), 0u);
  EXPECT_EQ(queue.status().waiting, 0);
}

}  // namespace
}  // namespace fovea::infer
