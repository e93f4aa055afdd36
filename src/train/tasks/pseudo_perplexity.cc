#include "tasks/pseudo_perplexity.h"

#include <algorithm>
#include <utility>

#include "base/fields.h"
#include "data/token_store.h"
#include "loop/evaluation.h"
#include "loop/special_tokens.h"
#include "losses/token_rows.h"
#include "open/model_parts.h"

namespace fovea::train {
namespace {

// The tokens first .. first + rows - 1 of the window of `length` tokens that begins at `start`.
struct WindowPart {
  int64_t start, length, first, rows;
};

std::vector<WindowPart> all_tokens(int64_t count, int64_t window, int64_t batch) {
  std::vector<WindowPart> parts;
  for (int64_t start = 0; start < count; start += window) {
    const int64_t length = std::min(window, count - start);
    for (int64_t first = 0; first < length; first += batch)
      parts.push_back({start, length, first, std::min(batch, length - first)});
  }
  return parts;
}

// Returns one copy of the window for each requested token, with that token replaced by the mask.
Batch masked_one_by_one(const TokenSpan& tokens, const WindowPart& masked, const Around& around,
                        int32_t mask) {
  const int64_t begin = std::ssize(around.before),
                T = begin + masked.length + std::ssize(around.after);
  Batch batch;
  TokenRows ids(masked.rows, T), labels(masked.rows, T, -1);
  for (int64_t r = 0; r < masked.rows; ++r) {
    int32_t* const row = ids.row(r);
    std::copy(around.before.begin(), around.before.end(), row);
    tokens.copy(masked.start, masked.length, row + begin);
    std::copy(around.after.begin(), around.after.end(), row + begin + masked.length);
    const int64_t at = begin + masked.first + r;
    labels.row(r)[at] = std::exchange(row[at], mask);
  }
  batch.source.ids = ids.tensor();
  batch.labels = labels.tensor();
  batch.predictions = masked.rows;
  batch.tokens = masked.rows * T;
  return batch;
}

}  // namespace

infer::Predictions predict_one_by_one(const model::Model& model,
                                      const std::vector<std::string>& data,
                                      const TextWindows& windows, int64_t batch,
                                      const EvaluationProgress& progress) {
  const model::Spec& spec = model.spec();
  const text::Tokenizer& tokenizer = model.tokenizer();
  const auto mask = first_id(tokenizer, {"[MASK]", "<mask>"});
  check_field(
      spec.encoder && !spec.decoder && spec.head.kind == model::HeadKind::language_model && mask,
      "one_by_one",
      "requires a language-model head and a mask token; expected a text encoder with "
      "both");
  const Around around = around_text(tokenizer);
  const int64_t window = windows.length - std::ssize(around.before) - std::ssize(around.after);
  check_field(window >= 1, "one_by_one",
              "{} tokens per window leave no room for text; expected more", windows.length);
  Corpus corpus(std::vector<std::filesystem::path>(data.begin(), data.end()));
  const TokenStore store(corpus, tokenizer, {.validation = 0, .cache = {}});
  const TokenSpan& tokens = store.training();
  check(tokens.count >= 1, "{}: no tokens; expected a text", data.front());

  const int64_t read = windows.most > 0 && windows.most < tokens.count / window
                           ? windows.most * window
                           : tokens.count;
  const std::vector<WindowPart> parts = all_tokens(read, window, batch);
  const auto count = std::ssize(parts);
  return predict(
      model::parts_of(model).transformer, DType::f32, infer::evaluation_task("one_by_one"), count,
      [&](int64_t n) {
        if (progress && !progress(static_cast<double>(n) / static_cast<double>(count)))
          fail(ErrorKind::Failed, "eval: interrupted");
        return masked_one_by_one(tokens, parts[static_cast<size_t>(n)], around, *mask);
      },
      windows.ranks);
}

}  // namespace fovea::train
