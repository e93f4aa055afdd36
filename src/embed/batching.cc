#include "embed/batching.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"
#include "tensor/tape.h"

namespace fovea {

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

Tensor in_batches(const std::vector<TokenizedText>& texts, int64_t width, int64_t most,
                  const std::function<Tensor(const TokenBatch&)>& model) {
  const NoGradient no_gradient;
  const Tensor all = zeros({static_cast<int64_t>(texts.size()), width});
  for (const std::vector<size_t>& chosen :
       batches_by_length(texts, most > 0 ? most : kFastBatchTokens)) {
    const Tensor rows = model(token_batch(texts, chosen));
    check(rows.dim(0) == static_cast<int64_t>(chosen.size()) && rows.dim(1) == width,
          "batch: its result is {}; expected [{}, {}]", rows.shape(), chosen.size(), width);
    for (size_t b = 0; b < chosen.size(); ++b)
      std::copy_n(rows.data_as<float>() + static_cast<int64_t>(b) * width, width,
                  all.data_as<float>() + static_cast<int64_t>(chosen[b]) * width);
  }
  return all;
}

}  // namespace fovea
