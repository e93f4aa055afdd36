#include "embed/batching.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

// The maximum of tokens per batch if each thread computes batches of its own, which are in memory
// at the same time, and the fewest that are worth it.
constexpr int64_t kThreadBatchTokens = 512, kLeastThreadBatchTokens = 128;

struct Batching {
  int64_t most;      // tokens per batch
  bool own_batches;  // whether each thread computes batches of its own
};
Batching batching_of(const std::vector<TokenizedText>& texts, int64_t most) {
  const int64_t limit = most > 0 ? most : kFastBatchTokens, threads = thread_count();
  const int64_t share = std::min(kThreadBatchTokens, most > 0 ? most / threads : limit);
  int64_t tokens = 0, longest = 0;
  for (const TokenizedText& text : texts) {
    tokens += std::ssize(text.ids);
    longest = std::max(longest, static_cast<int64_t>(std::ssize(text.ids)));
  }
  // With fewer than two batches for each thread, some threads would have nothing to do at the end.
  // Longer texts would take more memory than a thread's share.
  const bool own = threads > 1 && share >= std::max(kLeastThreadBatchTokens, longest) &&
                   tokens >= 2 * threads * share;
  return {own ? share : limit, own};
}

}  // namespace

std::vector<TokenizedText> tokenize_all(size_t count,
                                        const std::function<TokenizedText(size_t)>& tokenize) {
  constexpr int64_t kGrain = 16;  // minimum number of texts for an additional thread
  std::vector<TokenizedText> texts(count);
  parallel_for(static_cast<int64_t>(count), kGrain, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      texts[i] = tokenize(i);
  });
  return texts;
}

std::vector<std::vector<size_t>> batches_by_length(const std::vector<TokenizedText>& texts,
                                                   int64_t most) {
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto length = [&](size_t i) { return static_cast<int64_t>(texts[i].ids.size()); };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return length(a) > length(b); });
  std::vector<std::vector<size_t>> batches;
  int64_t longest = 0;  // length of the longest text in the batch
  for (const size_t i : order) {
    if (length(i) == 0) break;
    const bool fits =
        !batches.empty() && longest * (static_cast<int64_t>(batches.back().size()) + 1) <= most;
    if (!fits) {
      batches.emplace_back();
      longest = length(i);
    }
    batches.back().push_back(i);
  }
  return batches;
}

void each_batch(const std::vector<TokenizedText>& texts, int64_t most,
                const std::function<void(const TokenBatch&, const std::vector<size_t>&)>& compute) {
  const auto run = [&](const std::vector<size_t>& chosen) {
    const NoGradient no_gradient;
    compute(token_batch(texts, chosen), chosen);
  };
  const Batching batching = batching_of(texts, most);
  const auto batches = batches_by_length(texts, batching.most);
  if (batching.own_batches)  // without waiting for the other threads after each operation
    parallel_tasks(std::ssize(batches), [&](int64_t i) { run(batches[static_cast<size_t>(i)]); });
  else
    for (const std::vector<size_t>& chosen : batches) run(chosen);
}

Tensor in_batches(const std::vector<TokenizedText>& texts, int64_t width, int64_t most,
                  const std::function<Tensor(const TokenBatch&)>& model) {
  const Tensor all = zeros({static_cast<int64_t>(texts.size()), width});
  each_batch(texts, most, [&](const TokenBatch& batch, const std::vector<size_t>& chosen) {
    const Tensor rows = model(batch);
    check(rows.dim(0) == static_cast<int64_t>(chosen.size()) && rows.dim(1) == width,
          "batch: its result is {}; expected [{}, {}]", rows.shape(), chosen.size(), width);
    for (size_t b = 0; b < chosen.size(); ++b)
      copy_elements(all, static_cast<int64_t>(chosen[b]) * width, rows,
                    static_cast<int64_t>(b) * width, width);
  });
  return all;
}

}  // namespace fovea::infer
