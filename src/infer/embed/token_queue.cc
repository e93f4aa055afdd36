#include "embed/token_queue.h"

#include <numeric>

namespace fovea::infer {

TokenQueue::TokenQueue(Model model, int64_t width, const QueueOptions& options)
    : width_(width),
      queue_(
          [model = std::move(model), width](const std::vector<TokenizedText>& texts,
                                            int64_t group) {
            std::vector<size_t> all(texts.size());
            std::iota(all.begin(), all.end(), size_t{0});
            const std::vector<float> values = to_floats(model(token_batch(texts, all), group));
            std::vector<std::vector<float>> rows;  // of [B, width]
            for (auto row = values.begin(); row != values.end(); row += width)
              rows.emplace_back(row, row + width);
            return rows;
          },
          options) {}

uint64_t TokenQueue::add(std::vector<TokenizedText> texts, int64_t group, Done done) {
  auto joined = [width = static_cast<size_t>(width_), done = std::move(done)](
                    const std::vector<std::vector<float>>& rows, const Error* error) {
    std::vector<float> values(rows.size() * width);
    for (size_t i = 0; i < rows.size(); ++i)
      std::ranges::copy(rows[i], values.begin() + static_cast<int64_t>(i * width));
    done(std::move(values), error);
  };
  return queue_.add(std::move(texts), group, std::move(joined));
}

}  // namespace fovea::infer
