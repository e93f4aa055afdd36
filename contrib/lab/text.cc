#include "lab/text.h"

#include <algorithm>

#include "data/batches.h"
#include "data/train_tokenizer.h"

namespace fovea::lab {
namespace {

Batch next_tokens(int64_t rows, int64_t length,
                  const std::function<void(int32_t* ids, int32_t* targets)>& fill) {
  Batch batch;
  batch.target.ids = empty({rows, length}, DType::i32);
  batch.labels = empty({rows, length}, DType::i32);
  fill(batch.target.ids.data_as<int32_t>(), batch.labels.data_as<int32_t>());
  batch.asked = batch.tokens = rows * length;
  batch.units = rows;
  return batch;
}

}  // namespace

Text::Text(const std::vector<std::string>& paths, const std::string& tokenizer) : paths_(paths) {
  Corpus corpus({paths.begin(), paths.end()});
  const Tokenizer made = make_tokenizer(corpus, tokenizer);
  vocabulary_ = made.size();
  store_ = std::make_unique<TokenStore>(corpus, made, TokenStoreOptions{});
}

Batch Text::training_batch(int64_t step, int64_t rows, int64_t length, uint64_t seed) const {
  const Batches batches(training(), length, seed);
  return next_tokens(rows, length, [&](int32_t* ids, int32_t* targets) {
    batches.fill(step, rows, ids, targets);
  });
}

std::vector<Batch> Text::held_out_batches(int64_t windows, int64_t rows, int64_t length) const {
  const ValidationBatches fixed(held_out(), length, windows);
  std::vector<Batch> batches;
  for (int64_t first = 0; first < fixed.windows(); first += rows) {
    const int64_t count = std::min(rows, fixed.windows() - first);
    batches.push_back(next_tokens(count, length, [&](int32_t* ids, int32_t* targets) {
      fixed.fill(first, count, ids, targets);
    }));
  }
  return batches;
}

}  // namespace fovea::lab
