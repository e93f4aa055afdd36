#include "data/batches.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/fields.h"
#include "fovea/core/random.h"

namespace fovea::train {
namespace {

// Substreams of Stream::shuffle: of a single text in one part, and of all else.
constexpr uint32_t kWindowSubstream = 0, kMixtureSubstream = 22;

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

std::array<uint32_t, 4> drawn_words(uint64_t seed, int64_t epoch, uint32_t which) {
  return which == 0 ? philox(seed, Stream::shuffle, kWindowSubstream, static_cast<uint64_t>(epoch))
                    : philox(seed, Stream::shuffle, kMixtureSubstream,
                             static_cast<uint64_t>(epoch) << 24 | which);
}

// Returns the windows of each text, numbered from text to text.
std::vector<WeightedGroup> windows_of(const TextMixture& texts, int64_t context) {
  std::vector<WeightedGroup> groups;
  int64_t windows = 0;
  for (const WeightedText& text : texts) {
    check_length(text.tokens, context, "training");
    const int64_t begin = windows;
    windows += std::max<int64_t>(1, (text.tokens.count - 1) / context - 1);
    groups.push_back({begin, windows, text.weight});
  }
  return groups;
}

// Returns how many windows are held out of a text.
int64_t held_out_windows(const TokenSpan& tokens, int64_t context) {
  return std::max<int64_t>(0, tokens.count - 1) / context;
}

}  // namespace

Batches::Batches(TextMixture texts, int64_t context, uint64_t seed, bool fixed, int64_t shuffled)
    : texts_(std::move(texts)),
      context_(context),
      seed_(seed),
      fixed_(fixed),
      groups_(windows_of(texts_, context)),
      order_(groups_, std::max<int64_t>(1, shuffled / context),
             [seed](int64_t epoch, uint32_t which) {
               const auto words = drawn_words(seed, epoch, which);
               return uint64_t{words[2]} << 32 | words[3];
             }) {}

void Batches::fill(int64_t step, int64_t batch, int32_t* ids, int32_t* targets) const {
  for (int64_t row = 0; row < batch; ++row) {
    const int64_t sample = step * batch + row, window = order_[sample],
                  epoch = fixed_ ? 0 : sample / order_.per_epoch();
    size_t text = 0;
    while (window >= groups_[text].end) ++text;
    const auto words = drawn_words(seed_, epoch, static_cast<uint32_t>(text));
    const int64_t windows = groups_[text].end - groups_[text].begin;
    const auto phases = static_cast<uint64_t>(texts_[text].tokens.count - windows * context_);
    const uint64_t phase = (uint64_t{words[0]} << 32 | words[1]) % phases;
    const int64_t start = static_cast<int64_t>(phase) + (window - groups_[text].begin) * context_;
    copy_window(texts_[text].tokens, start, context_, ids + row * context_,
                targets + row * context_);
  }
}

ValidationBatches::ValidationBatches(TextMixture texts, int64_t context, int64_t eval_windows)
    : texts_(std::move(texts)), context_(context) {
  check_field(context >= 1, "context", "is {}; expected at least 1", context);
  for (const WeightedText& text : texts_) all_ += held_out_windows(text.tokens, context);
  if (all_ == 0) check_length(texts_.front().tokens, context, "validation");
  check_field(eval_windows >= 1, "evaluate_windows", "is {}; expected at least 1", eval_windows);
  windows_ = std::min(all_, eval_windows);
}

void ValidationBatches::fill(int64_t first, int64_t batch, int32_t* ids, int32_t* targets) const {
  for (int64_t row = 0; row < batch; ++row) {
    int64_t window = (first + row) * all_ / windows_;
    size_t text = 0;
    for (;; ++text) {
      const int64_t here = held_out_windows(texts_[text].tokens, context_);
      if (window < here) break;
      window -= here;
    }
    copy_window(texts_[text].tokens, window * context_, context_, ids + row * context_,
                targets + row * context_);
  }
}

}  // namespace fovea::train
