#include "data/batches.h"

#include <algorithm>
#include <string>

#include "base/fields.h"
#include "data/permutation.h"
#include "fovea/core/random.h"

namespace fovea::train {
namespace {

std::string grouped(int64_t number) {  // 1234567 -> 1,234,567
  return number < 1000 ? fmt::format("{}", number)
                       : fmt::format("{},{:03}", grouped(number / 1000), number % 1000);
}

void check_length(const TokenSpan& tokens, int64_t context, const char* part) {
  check_field(context >= 1, "context", "is {}; expected at least 1", context);
  check_field(tokens.count > context, "context",
              "{} is too long: the text has {} tokens for {}; expected at least context + 1 "
              "= {}",
              grouped(context), grouped(tokens.count), part, grouped(context + 1));
}

// Copies a window: `ids` receive all tokens but the last, `targets` all tokens but the first.
void copy_window(const TokenSpan& tokens, int64_t start, int64_t context, int32_t* ids,
                 int32_t* targets) {
  tokens.copy(start, context, ids);
  std::copy(ids + 1, ids + context, targets);
  tokens.copy(start + context, 1, targets + context - 1);
}

}  // namespace

Batches::Batches(const TokenSpan& tokens, int64_t context, uint64_t seed, bool fixed)
    : tokens_(tokens), context_(context), seed_(seed), fixed_(fixed) {
  check_length(tokens, context, "training");
  windows_ = std::max<int64_t>(1, (tokens.count - 1) / context - 1);
  phases_ = tokens.count - windows_ * context;
}

int64_t Batches::window_start(int64_t sample) const {
  const auto epoch = static_cast<uint64_t>(sample / windows_),
             index = static_cast<uint64_t>(sample % windows_);
  const auto words = philox(seed_, Stream::shuffle, 0, epoch);
  const auto of_phase = fixed_ ? philox(seed_, Stream::shuffle, 0, 0) : words;
  const uint64_t phase =
      (uint64_t{of_phase[0]} << 32 | of_phase[1]) % static_cast<uint64_t>(phases_);
  const Permutation order(static_cast<uint64_t>(windows_), uint64_t{words[2]} << 32 | words[3]);
  return static_cast<int64_t>(phase) + static_cast<int64_t>(order(index)) * context_;
}

void Batches::fill(int64_t step, int64_t batch, int32_t* ids, int32_t* targets) const {
  for (int64_t row = 0; row < batch; ++row) {
    const int64_t start = window_start(step * batch + row);
    copy_window(tokens_, start, context_, ids + row * context_, targets + row * context_);
  }
}

ValidationBatches::ValidationBatches(const TokenSpan& tokens, int64_t context, int64_t eval_windows)
    : tokens_(tokens), context_(context) {
  check_length(tokens, context, "validation");
  check_field(eval_windows >= 1, "evaluate_windows", "is {}; expected at least 1", eval_windows);
  windows_ = std::min((tokens.count - 1) / context, eval_windows);
}

void ValidationBatches::fill(int64_t first, int64_t batch, int32_t* ids, int32_t* targets) const {
  const int64_t all = (tokens_.count - 1) / context_;
  for (int64_t row = 0; row < batch; ++row) {
    const int64_t start = (first + row) * all / windows_ * context_;
    copy_window(tokens_, start, context_, ids + row * context_, targets + row * context_);
  }
}

}  // namespace fovea::train
