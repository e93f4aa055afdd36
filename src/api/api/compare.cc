#include "fovea/compare.h"

#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "base/float_mode.h"
#include "base/math.h"
#include "base/threads.h"
#include "data/token_store.h"
#include "generate/rules.h"
#include "open/model_parts.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Computes logits of this many tokens at a time, to limit memory with large vocabularies.
constexpr int64_t kRows = 128;

// A row of logits, the logarithm of the sum of their exponentials, and the index of the largest.
struct Row {
  const float* logits;
  double log_sum;
  int64_t top;

  Row(const float* row, int64_t size) : logits(row), log_sum(0) {
    top = std::max_element(row, row + size) - row;
    for (int64_t i = 0; i < size; ++i) log_sum += math::exp(double{row[i]} - double{row[top]});
    log_sum = math::log(log_sum) + double{row[top]};
  }
  double log_probability(int64_t i) const { return double{logits[i]} - log_sum; }
};

// What is measured of each token.
struct TokenResult {
  double loss, full_loss, divergence, flips;
};

// The mean of a number over the tokens, and its standard error.
class Mean {
 public:
  void add(double x) {
    ++count_;
    sum_ += x;
    squares_ += x * x;
  }
  double value() const { return sum_ / count_; }
  double error() const {
    const double variance = squares_ / count_ - value() * value();
    return count_ < 2 ? 0 : std::sqrt(std::max(0.0, variance) / (count_ - 1));
  }

 private:
  double count_ = 0, sum_ = 0, squares_ = 0;
};

struct Means {
  Mean loss, full_loss, loss_difference, divergence, flips;

  void add(const TokenResult& token) {
    loss.add(token.loss);
    full_loss.add(token.full_loss);
    loss_difference.add(token.loss - token.full_loss);
    divergence.add(token.divergence);
    flips.add(token.flips);
  }
};

TokenResult compare_row(const float* logits, const float* full_logits, int64_t size,
                        int32_t target) {
  const Row row(logits, size), full(full_logits, size);
  TokenResult result = {-row.log_probability(target), -full.log_probability(target), 0,
                        row.top == full.top ? 0.0 : 1.0};
  for (int64_t i = 0; i < size; ++i) {
    const double log_p = full.log_probability(i);
    result.divergence += math::exp(log_p) * (log_p - row.log_probability(i));
  }
  return result;
}

// Reads a text as generation reads a prompt: keys and values are stored in a cache, in its dtype.
// ids [1, T] -> [1, T, C]
Tensor read(const model::Transformer& model, DType cache_type, const Tensor& ids) {
  model::KvCache cache(model::page_layout(*model.spec.decoder, cache_type), 1, ids.size());
  model::Pass pass;
  pass.cache = &cache;
  return model.hidden(ids, pass);
}

// Adds the tokens of one window. Each of its tokens except the last predicts the next token.
void add_window(const model::Transformer& model, DType cache, const model::Transformer& full,
                const std::vector<int32_t>& window, Means& means) {
  const NoGradient off;
  const int64_t length = static_cast<int64_t>(window.size()) - 1, V = model.spec.vocabulary;
  const Tensor ids = tensor_of(std::span(window).first(window.size() - 1), {1, length});
  const Shape rows{length, model.spec.width}, full_rows{length, full.spec.width};
  const Tensor hidden = read(model, cache, ids).view(rows),
               full_hidden = full.hidden(ids, {}).view(full_rows);
  for (int64_t begin = 0; begin < length; begin += kRows) {
    const int64_t count = std::min(kRows, length - begin);
    const HostValues<float> logits(model.logits(hidden.rows(begin, begin + count))),
        full_logits(full.logits(full_hidden.rows(begin, begin + count)));
    std::vector<TokenResult> results(static_cast<size_t>(count));
    parallel_for(count, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        results[static_cast<size_t>(i)] =
            compare_row(logits.row(i).data(), full_logits.row(i).data(), V,
                        window[static_cast<size_t>(begin + i + 1)]);
      }
    });
    for (const TokenResult& token : results) means.add(token);
  }
}

}  // namespace

Comparison compare(const model::Model& model, const model::Model& full,
                   const std::vector<std::string>& data,
                   const std::function<bool(double fraction)>& progress) {
  const FloatMode mode;
  check_field(model.spec().vocabulary == full.spec().vocabulary, "against",
              "the vocabulary has {} tokens, but the model's has {}; expected equal vocabularies",
              full.spec().vocabulary, model.spec().vocabulary);
  for (const model::Model* each : {&model, &full}) {
    check_field(!infer::checked_writer(each->spec()).encoder, "against",
                "the model has an encoder; expected a decoder-only model");
  }
  train::Corpus corpus(std::vector<std::filesystem::path>(data.begin(), data.end()));
  const train::TokenStore store(corpus, model.tokenizer(), {.validation = 0, .cache = {}});
  const train::TokenSpan& tokens = store.training();
  check(tokens.count >= 2, "{}: {} tokens; expected at least 2", data.front(), tokens.count);

  Comparison result;
  result.tokens = tokens.count - 1;
  result.weight_bytes = model.weight_bytes();
  result.full_weight_bytes = full.weight_bytes();
  const int64_t context = std::min({model.spec().context, full.spec().context, result.tokens});
  Means means;
  for (int64_t at = 0; at < result.tokens; at += context) {
    if (progress && !progress(static_cast<double>(at) / static_cast<double>(result.tokens)))
      fail(ErrorKind::Failed, "eval: interrupted");
    std::vector<int32_t> window(static_cast<size_t>(std::min(context, result.tokens - at) + 1));
    tokens.copy(at, static_cast<int64_t>(window.size()), window.data());
    add_window(model::parts_of(model).transformer, model::parts_of(model).cache,
               model::parts_of(full).transformer, window, means);
  }
  result.perplexity = math::exp(means.loss.value());
  result.perplexity_error = result.perplexity * means.loss.error();
  result.full_perplexity = math::exp(means.full_loss.value());
  result.loss_difference = means.loss_difference.value();
  result.loss_difference_error = means.loss_difference.error();
  result.divergence = means.divergence.value();
  result.divergence_error = means.divergence.error();
  result.flips = means.flips.value();
  result.flips_error = means.flips.error();
  return result;
}

}  // namespace fovea
