#include "search/posting_lists.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/host_values.h"

namespace fovea::infer {
namespace {

template <class T>
std::vector<T> loaded(const SafeTensors& file, const std::string& path, const char* name,
                      DType dtype) {
  const Tensor x = file.tensor(name);
  if (x.dtype() != dtype || x.rank() != 1)
    fail(ErrorKind::BadFile, "{}: {} has another type or number of axes; expected one axis", path,
         name);
  const HostValues<T> values(x);
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<ScoredPassage> best_of(std::vector<ScoredPassage> all, int64_t count) {
  const auto better = [](const ScoredPassage& a, const ScoredPassage& b) {
    return a.score != b.score ? a.score > b.score : a.number < b.number;
  };
  const auto most = std::min(count, std::ssize(all));
  std::partial_sort(all.begin(), all.begin() + most, all.end(), better);
  all.resize(static_cast<size_t>(most));
  return all;
}

PostingLists::PostingLists(const SparseVectors& rows)
    : passages_(rows.count),
      starts_(static_cast<size_t>(rows.width) + 1),
      numbers_(rows.indices.size()),
      weights_(rows.indices.size()) {
  for (const int32_t term : rows.indices) ++starts_[static_cast<size_t>(term) + 1];
  for (size_t t = 1; t < starts_.size(); ++t) starts_[t] += starts_[t - 1];
  std::vector<int64_t> next(starts_.begin(), starts_.end() - 1);
  for (size_t row = 0; row + 1 < rows.starts.size(); ++row) {
    for (auto i = static_cast<size_t>(rows.starts[row]);
         i < static_cast<size_t>(rows.starts[row + 1]); ++i) {
      const auto at = static_cast<size_t>(next[static_cast<size_t>(rows.indices[i])]++);
      numbers_[at] = static_cast<int32_t>(row);
      weights_[at] = rows.values[i];
    }
  }
}

PostingLists::PostingLists(const SafeTensors& file, const std::string& path, int64_t terms,
                           int64_t passages)
    : passages_(passages),
      starts_(loaded<int64_t>(file, path, "starts", DType::i64)),
      numbers_(loaded<int32_t>(file, path, "passages", DType::i32)),
      weights_(loaded<float>(file, path, "weights", DType::f32)) {
  const auto expect = [&](bool holds, const char* wrong) {
    if (holds) return;
    fail(ErrorKind::BadFile, "{}: {}; expected lists of {} terms in {} passages", path, wrong,
         terms, passages);
  };
  expect(std::ssize(starts_) - 1 == terms, "has another number of terms");
  expect(numbers_.size() == weights_.size(), "has different numbers of passages and weights");
  expect(starts_.front() == 0 && starts_.back() == std::ssize(numbers_) &&
             std::ranges::is_sorted(starts_),
         "its lists do not follow one another");
  for (size_t t = 0; t + 1 < starts_.size(); ++t)
    for (auto i = static_cast<size_t>(starts_[t]); i < static_cast<size_t>(starts_[t + 1]); ++i) {
      const int64_t before = i == static_cast<size_t>(starts_[t]) ? -1 : numbers_[i - 1];
      expect(numbers_[i] > before && numbers_[i] < passages, "a passage does not exist");
      expect(std::isfinite(weights_[i]), "a weight is not finite");
    }
}

std::map<std::string, Tensor> PostingLists::tensors() const {
  return {{"starts", vector_tensor(starts_)},
          {"passages", vector_tensor(numbers_)},
          {"weights", vector_tensor(weights_)}};
}

SparseVectors PostingLists::rows() const {
  SparseVectors rows;
  rows.count = passages_;
  rows.width = terms();
  rows.starts.assign(static_cast<size_t>(passages_) + 1, 0);
  rows.indices.resize(numbers_.size());
  rows.values.resize(numbers_.size());
  for (const int32_t number : numbers_) ++rows.starts[static_cast<size_t>(number) + 1];
  for (size_t i = 1; i < rows.starts.size(); ++i) rows.starts[i] += rows.starts[i - 1];
  std::vector<int64_t> next(rows.starts.begin(), rows.starts.end() - 1);
  for (size_t t = 0; t + 1 < starts_.size(); ++t)
    for (auto i = static_cast<size_t>(starts_[t]); i < static_cast<size_t>(starts_[t + 1]); ++i) {
      const auto at = static_cast<size_t>(next[static_cast<size_t>(numbers_[i])]++);
      rows.indices[at] = static_cast<int32_t>(t);
      rows.values[at] = weights_[i];
    }
  return rows;
}

std::vector<ScoredPassage> PostingLists::matches(std::span<const TermWeight> query) const {
  std::vector<double> scores(static_cast<size_t>(passages_));
  std::vector<char> found(static_cast<size_t>(passages_));
  for (const auto& [term, weight] : query) {
    if (term < 0 || term >= terms()) continue;
    const auto t = static_cast<size_t>(term);
    for (auto i = static_cast<size_t>(starts_[t]); i < static_cast<size_t>(starts_[t + 1]); ++i) {
      scores[static_cast<size_t>(numbers_[i])] += double{weight} * double{weights_[i]};
      found[static_cast<size_t>(numbers_[i])] = 1;
    }
  }
  std::vector<ScoredPassage> all;
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != 0) all.push_back({static_cast<int64_t>(i), static_cast<float>(scores[i])});
  return all;
}

}  // namespace fovea::infer
