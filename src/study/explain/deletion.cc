#include "explain/deletion.h"

#include <algorithm>
#include <cmath>

#include "fovea/core/random.h"

namespace fovea::study {
namespace {

ExplainedText without(const ExplainedText& text, const std::vector<int64_t>& removed) {
  const auto contains = [](const std::vector<int64_t>& list, int64_t t) {
    return std::find(list.begin(), list.end(), t) != list.end();
  };
  ExplainedText rest;
  for (int64_t t = 0; t < text.length(); ++t) {
    if (contains(removed, t)) continue;
    if (contains(text.positions, t)) rest.positions.push_back(rest.length());
    const auto token = static_cast<size_t>(t);
    rest.tokens.ids.push_back(text.tokens.ids[token]);
    rest.own.push_back(text.own[token]);
    if (!text.tokens.types.empty()) rest.tokens.types.push_back(text.tokens.types[token]);
  }
  return rest;
}

// Returns `count` different elements of `positions`.
std::vector<int64_t> random_choice(std::vector<int64_t> positions, size_t count, Random& random) {
  for (size_t i = 0; i < count; ++i) {
    const auto left = static_cast<double>(positions.size() - i);
    std::swap(positions[i], positions[i + static_cast<size_t>(random.uniform_double() * left)]);
  }
  positions.resize(count);
  return positions;
}

// The number of tokens in this share of `tokens`, rounded up; at least one token stays.
size_t count_of(double share, size_t tokens) {
  if (tokens < 2) return 0;
  constexpr double kRounding = 1e-9;  // 0.1 * 30 is more than 3
  const double count = std::ceil(share * static_cast<double>(tokens) - kRounding);
  return std::clamp<size_t>(static_cast<size_t>(count), 1, tokens - 1);
}

}  // namespace

DeletionTests::DeletionTests(const ExplainedOutput& output, const ExplainedText& text, double value,
                             const ExplainOptions& options)
    : output_(output),
      text_(text),
      value_(value),
      removable_(text.removable()),
      count_(count_of(options.removed_share, removable_.size())) {
  if (count_ == 0) return;
  Random random(options.seed, Stream::sampling);
  std::vector<ExplainedText> texts;
  for (int64_t i = 0; i < options.random_choices; ++i)
    texts.push_back(without(text, random_choice(removable_, count_, random)));
  const std::vector<double> values = values_of(output, texts);
  double sum = 0, squares = 0;
  for (const double changed : values) sum += changed - value;
  random_change_ = sum / static_cast<double>(values.size());
  for (const double changed : values) {
    const double difference = changed - value - random_change_;
    squares += difference * difference;
  }
  random_deviation_ = std::sqrt(squares / static_cast<double>(values.size()));
}

double DeletionTests::change_without(const std::vector<int64_t>& removed) const {
  return values_of(output_, {without(text_, removed)})[0] - value_;
}

std::optional<DeletionTest> DeletionTests::of(const std::vector<double>& scores) const {
  if (count_ == 0) return std::nullopt;
  std::vector<int64_t> order = removable_;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  order.resize(count_);
  return DeletionTest{order, change_without(order), random_change_, random_deviation_};
}

}  // namespace fovea::study
