#include "loop/step_shares.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace fovea::train {
namespace {

constexpr double kMostExcess = 1.125;  // of the largest share, for fewer nodes

// The tree of a step: pass p has the indices from p * width on.
class StepTree {
 public:
  StepTree(const std::vector<PassUnits>& passes, int ranks)
      : passes_(passes), ranks_(ranks), width_(1) {
    for (const PassUnits& pass : passes)
      width_ =
          std::max(width_, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(pass.count))));
  }

  int64_t size() const { return width_ * std::ssize(passes_); }

  // Returns the first index of each rank, and the end, if shares are whole nodes of `node` indices.
  std::vector<int64_t> starts(int64_t node) const {
    std::vector<int64_t> starts(static_cast<size_t>(ranks_) + 1, size());
    starts[0] = 0;
    const double total = cost(0, size());
    double before = 0;
    int rank = 0;
    for (int64_t begin = 0; begin < size(); begin += node) {
      const double each = cost(begin, begin + node);
      const auto of = std::min(ranks_ - 1, static_cast<int>((before + each / 2) * ranks_ / total));
      while (rank < of) starts[static_cast<size_t>(++rank)] = begin;
      before += each;
    }
    return starts;
  }

  double largest(const std::vector<int64_t>& starts) const {
    double most = 0;
    for (size_t r = 0; r + 1 < starts.size(); ++r)
      most = std::max(most, cost(starts[r], starts[r + 1]));
    return most;
  }

  // Returns the complete nodes among the indices [begin, end); without an end, the tree has none.
  std::vector<StepNode> nodes(int64_t begin, int64_t end) const {
    if (end == size()) end = std::numeric_limits<int64_t>::max() / 2;
    std::vector<StepNode> all;
    while (begin < std::min(end, size())) {
      int64_t node = 1;
      while (begin % (2 * node) == 0 && begin + 2 * node <= end && node < size()) node *= 2;
      StepNode one{ranges(begin, begin + node), begin + node - 1};
      if (!one.ranges.empty()) all.push_back(std::move(one));
      begin += node;
    }
    return all;
  }

 private:
  std::vector<UnitRange> ranges(int64_t begin, int64_t end) const {
    std::vector<UnitRange> all;
    for (int64_t p = begin / width_; p < std::ssize(passes_) && p * width_ < end; ++p) {
      const int64_t first = std::max<int64_t>(0, begin - p * width_),
                    past = std::min(end - p * width_, passes_[static_cast<size_t>(p)].count);
      if (first < past) all.push_back({static_cast<size_t>(p), first, past, p * width_ + past - 1});
    }
    return all;
  }
  double cost(int64_t begin, int64_t end) const {
    double sum = 0;
    for (const UnitRange& range : ranges(begin, end))
      sum += static_cast<double>(range.end - range.begin) * passes_[range.pass].cost;
    return sum;
  }

  const std::vector<PassUnits>& passes_;
  int ranks_;
  int64_t width_;
};

}  // namespace

std::vector<std::vector<StepNode>> share_step(const std::vector<PassUnits>& passes, int ranks) {
  const StepTree tree(passes, ranks);
  std::vector<int64_t> starts = tree.starts(1);
  const double most = kMostExcess * tree.largest(starts);
  for (int64_t node = 2; node < tree.size(); node *= 2) {
    const std::vector<int64_t> coarser = tree.starts(node);
    if (tree.largest(coarser) <= most) starts = coarser;
  }
  std::vector<std::vector<StepNode>> shares;
  for (size_t rank = 0; rank + 1 < starts.size(); ++rank)
    shares.push_back(tree.nodes(starts[rank], starts[rank + 1]));
  return shares;
}

}  // namespace fovea::train
