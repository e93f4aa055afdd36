#include "loop/rollout_batch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "losses/token_rows.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

// Adds lists of tokens to the tensors of a snapshot.
void add_lists(std::map<std::string, Tensor>& tensors, const std::string& name,
               const std::string& lengths_name, const std::vector<std::vector<int32_t>>& lists) {
  std::vector<int32_t> all, lengths;
  for (const auto& each : lists) {
    all.insert(all.end(), each.begin(), each.end());
    lengths.push_back(static_cast<int32_t>(each.size()));
  }
  tensors["answers." + name] = tensor_of(all, {std::ssize(all)});
  tensors["answers." + lengths_name] = tensor_of(lengths, {std::ssize(lengths)});
}

template <class T>
std::vector<T> numbers_in(const model::Snapshot& snapshot, const std::string& name) {
  if (snapshot.tensors.find("answers." + name) == nullptr) return {};
  const HostValues<T> stored(snapshot.tensors.tensor("answers." + name));
  return {stored.begin(), stored.end()};
}

std::vector<std::vector<int32_t>> lists_in(const model::Snapshot& snapshot, const std::string& name,
                                           const std::string& lengths_name) {
  std::vector<std::vector<int32_t>> lists;
  const auto all = numbers_in<int32_t>(snapshot, name);
  size_t begin = 0;
  for (const int32_t length : numbers_in<int32_t>(snapshot, lengths_name)) {
    const auto size = static_cast<size_t>(length);
    check(length >= 0 && size <= all.size() - begin, "{}: answers.{} exceed answers.{}",
          snapshot.path, lengths_name, name);
    lists.emplace_back(all.begin() + static_cast<int64_t>(begin),
                       all.begin() + static_cast<int64_t>(begin + size));
    begin += size;
  }
  return lists;
}

// Whether the prompt and the replies are parts of the tokens, one after another, and leave some.
bool fit(const RolloutBatch& batch, size_t i) {
  int32_t at = batch.prompts[i];
  if (at < 1) return false;
  if (!batch.replies.empty()) {
    const std::vector<int32_t>& ends = batch.replies[i];
    if (ends.size() % 2 != 0) return false;
    for (const int32_t end : ends)
      if (end < std::exchange(at, end)) return false;
  }
  return at <= std::ssize(batch.ids[i]);
}

}  // namespace

int64_t RolloutBatch::length(size_t answer) const {
  int64_t tokens = std::ssize(ids[answer]) - prompts[answer];
  if (!replies.empty())
    for (size_t i = 0; i < replies[answer].size(); i += 2)
      tokens -= replies[answer][i + 1] - replies[answer][i];
  return tokens;
}

std::vector<int64_t> RolloutBatch::starts() const {
  std::vector<int64_t> all = {0};
  for (size_t i = 0; i < count(); ++i) all.push_back(all.back() + length(i));
  return all;
}

Batch RolloutBatch::batch_of(std::span<const size_t> answers, int32_t padding) const {
  int64_t T = 0;
  for (const size_t i : answers) T = std::max(T, std::ssize(ids[i]));
  const int64_t B = std::ssize(answers);
  Batch batch;
  TokenRows tokens(B, T, padding), labels(B, T, -1);
  for (int64_t row = 0; row < B; ++row) {
    const size_t i = answers[static_cast<size_t>(row)];
    std::ranges::copy(ids[i], tokens.row(row));
    // The token at p is predicted at p - 1.
    std::copy(ids[i].begin() + prompts[i], ids[i].end(), labels.row(row) + prompts[i] - 1);
    if (!replies.empty())
      for (size_t r = 0; r < replies[i].size(); r += 2)
        std::fill(labels.row(row) + replies[i][r] - 1, labels.row(row) + replies[i][r + 1] - 1, -1);
    // No earlier token of a decoder attends to the padding of a target.
    if (sources.empty()) batch.target_valid.push_back({0, std::ssize(ids[i])});
    batch.tokens += std::ssize(ids[i]);
    batch.predictions += length(i);
  }
  batch.target.ids = tokens.tensor();
  batch.labels = labels.tensor();
  if (!sources.empty()) add_sources(batch, answers, padding);
  return batch;
}

void RolloutBatch::add_sources(Batch& batch, std::span<const size_t> answers,
                               int32_t padding) const {
  int64_t S = 0;
  for (const size_t i : answers) S = std::max(S, std::ssize(sources[i]));
  TokenRows tokens(std::ssize(answers), S, padding);
  for (int64_t row = 0; row < tokens.rows(); ++row) {
    const size_t i = answers[static_cast<size_t>(row)];
    std::ranges::copy(sources[i], tokens.row(row));
    batch.source_valid.push_back({0, std::ssize(sources[i])});
    batch.tokens += std::ssize(sources[i]);
  }
  batch.source.ids = tokens.tensor();
}

Tensor RolloutBatch::picked(std::span<const size_t> answers,
                            const std::vector<float>& numbers) const {
  const std::vector<int64_t> first = starts();
  std::vector<float> found;
  for (const size_t i : answers)
    found.insert(found.end(), numbers.begin() + first[i], numbers.begin() + first[i + 1]);
  return tensor_of(found, {std::ssize(found)});
}

std::map<std::string, Tensor> RolloutBatch::state() const {
  std::map<std::string, Tensor> tensors = {
      {"answers.prompts", tensor_of(prompts, {std::ssize(prompts)})},
      {"answers.trained", tensor_of(trained, {std::ssize(trained)})}};
  add_lists(tensors, "ids", "lengths", ids);
  if (!sources.empty()) add_lists(tensors, "sources", "source_lengths", sources);
  if (!replies.empty()) add_lists(tensors, "replies", "reply_lengths", replies);
  const auto add = [&](const char* name, const std::vector<float>& numbers) {
    if (!numbers.empty()) tensors[name] = tensor_of(numbers, {std::ssize(numbers)});
  };
  add("answers.old", old);
  add("answers.reference", reference);
  add("answers.values", values);
  add("answers.advantages", advantages);
  add("answers.returns", returns);
  return tensors;
}

RolloutBatch RolloutBatch::restored(const model::Snapshot& snapshot) {
  RolloutBatch batch;
  batch.ids = lists_in(snapshot, "ids", "lengths");
  batch.sources = lists_in(snapshot, "sources", "source_lengths");
  batch.replies = lists_in(snapshot, "replies", "reply_lengths");
  batch.prompts = numbers_in<int32_t>(snapshot, "prompts");
  batch.trained = numbers_in<int32_t>(snapshot, "trained");
  batch.old = numbers_in<float>(snapshot, "old");
  batch.reference = numbers_in<float>(snapshot, "reference");
  batch.values = numbers_in<float>(snapshot, "values");
  batch.advantages = numbers_in<float>(snapshot, "advantages");
  batch.returns = numbers_in<float>(snapshot, "returns");
  check(batch.prompts.size() == batch.count() && batch.trained.size() == batch.count() &&
            (batch.sources.empty() || batch.sources.size() == batch.count()) &&
            (batch.replies.empty() || batch.replies.size() == batch.count()),
        "{}: the tensors answers.* do not fit together", snapshot.path);
  bool fits = true;
  for (size_t i = 0; i < batch.count(); ++i) fits = fits && fit(batch, i);
  check(fits && std::ssize(batch.advantages) == batch.starts().back(),
        "{}: the tensors answers.* do not fit together", snapshot.path);
  return batch;
}

std::vector<std::vector<size_t>> passes_of(const RolloutBatch& batch, std::vector<size_t> answers,
                                           int64_t most) {
  std::sort(answers.begin(), answers.end());
  std::stable_sort(answers.begin(), answers.end(),
                   [&](size_t a, size_t b) { return batch.ids[a].size() < batch.ids[b].size(); });
  std::vector<std::vector<size_t>> passes;
  const auto size = static_cast<size_t>(most);
  for (size_t begin = 0; begin < answers.size(); begin += size) {
    const size_t end = std::min(begin + size, answers.size());
    passes.emplace_back(answers.begin() + static_cast<int64_t>(begin),
                        answers.begin() + static_cast<int64_t>(end));
  }
  return passes;
}

}  // namespace fovea::train
