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
  double sum = 0;
  const auto score = [&](int64_t windows, int64_t length, int64_t start) {
    const int64_t batch = std::max<int64_t>(1, kTokensAtOnce / length);
    std::vector<int32_t> window(static_cast<size_t>(length) + 1);
    sum += static_cast<double>(windows * length) *
           mean_loss(model.parts().transformer, DType::f32, windows, length, batch,
                     [&](int64_t first, int64_t count, int32_t* ids, int32_t* targets) {
                       if (progress &&
                           !progress(static_cast<double>(first) / static_cast<double>(whole + 1))) {
                         fail(ErrorKind::Failed, "eval: interrupted");
                       }
                       for (int64_t w = 0; w < count; ++w) {
                         tokens.copy(start + (first + w) * length, length + 1, window.data());
                         std::copy_n(window.begin(), length, ids + w * length);
                         std::copy_n(window.begin() + 1, length, targets + w * length);
                       }
                     });
  };
  score(whole, context, 0);
  if (rest > 0) score(1, rest, whole * context);

  result.loss = sum / static_cast<double>(result.tokens);
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
