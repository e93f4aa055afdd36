#include "fovea/evaluate.h"

#include <cmath>

#include "api/parts.h"
#include "base/error.h"
#include "data/token_store.h"
#include "train/evaluation.h"

namespace fovea {

Evaluation evaluate(const Model& model, const std::vector<std::string>& data,
                    const std::function<bool(double fraction)>& progress) {
  constexpr int64_t kTokensAtOnce = 4096;  // enough rows for full-rate products, small logits
  const Tokenizer& tokenizer = model.tokenizer();
  Corpus corpus(std::vector<std::filesystem::path>(data.begin(), data.end()));
  const TokenStore store(corpus, tokenizer, {.validation = 0, .cache = {}});
  const TokenSpan& tokens = store.training();
  check(tokens.count >= 2, "{}: {} tokens; expected at least 2, one to predict from the other",
        data.front(), tokens.count);

  Evaluation result;
  result.tokens = tokens.count - 1;  // the first one is given
  result.bytes = tokens.bytes;
  const int64_t context = std::min(model.spec().context, result.tokens);
  const int64_t whole = result.tokens / context, rest = result.tokens % context;
  const auto window = [&](int64_t start, int64_t rows, int64_t length) {
    Batch batch;
    batch.target.ids = empty({rows, length}, DType::i32);
    batch.labels = empty({rows, length}, DType::i32);
    batch.asked = batch.tokens = rows * length;
    tokens.copy(start, rows * length, batch.target.ids.data_as<int32_t>());
    tokens.copy(start + 1, rows * length, batch.labels.data_as<int32_t>());
    return batch;
  };
  const int64_t rows = std::max<int64_t>(1, kTokensAtOnce / context);
  const int64_t batches = (whole + rows - 1) / rows;
  result.loss =
      score(model.parts().transformer, DType::f32, batches + (rest > 0 ? 1 : 0), [&](int64_t n) {
        if (progress && !progress(static_cast<double>(n) / static_cast<double>(batches + 1)))
          fail(ErrorKind::Failed, "eval: interrupted");
        if (n == batches) return window(whole * context, 1, rest);
        return window(n * rows * context, std::min(rows, whole - n * rows), context);
      }).loss;
  result.perplexity = std::exp(result.loss);
  result.bits_per_byte = bits_per_byte(result.loss, result.tokens, result.bytes);
  if (const auto unknown = tokenizer.unknown_id()) {
    std::vector<int32_t> ids(4096);
    for (int64_t at = 0; at < tokens.count; at += static_cast<int64_t>(ids.size())) {
      const int64_t length = std::min<int64_t>(static_cast<int64_t>(ids.size()), tokens.count - at);
      tokens.copy(at, length, ids.data());
      result.unknown += std::count(ids.begin(), ids.begin() + length, *unknown);
    }
  }
  return result;
}

}  // namespace fovea
