#include "checkpoint/packing_queue.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/threads.h"

namespace fovea::model {
namespace {

// The packed bytes of a piece of work: large enough to release the pages of a file with few system
// calls, small enough for threads to finish at the same time.
constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

void PackingQueue::add_to_pack(std::vector<PackedWeight> weights, Report report) {
  entries_.push_back({std::move(weights), std::move(report), true});
}

void PackingQueue::add_to_count(std::vector<PackedWeight> weights, Report report) {
  entries_.push_back({std::move(weights), std::move(report), false});
}

void PackingQueue::run() {
  struct Piece {
    size_t entry;
    const PackedWeight* weight;
    int64_t begin, end;
  };
  std::vector<Piece> pieces;
  const std::vector<Entry> entries = std::exchange(entries_, {});
  for (size_t i = 0; i < entries.size(); ++i) {
    for (const PackedWeight& weight : entries[i].weights) {
      if (entries[i].packs) weight.begin_packing();
      const int64_t panels = panels_of(weight.matrix());
      const auto count = static_cast<int64_t>(weight.bytes() / kPieceBytes + 1);
      const int64_t step = (panels + count - 1) / count;
      for (int64_t begin = 0; begin < panels; begin += step)
        pieces.push_back({i, &weight, begin, std::min(panels, begin + step)});
    }
  }
  std::vector<std::atomic<int64_t>> nonfinite(entries.size());
  parallel_tasks(std::ssize(pieces), [&](int64_t index) {
    const auto& [entry, weight, begin, end] = pieces[static_cast<size_t>(index)];
    nonfinite[entry] +=
        entries[entry].packs ? weight->pack_part(begin, end) : weight->count_nonfinite(begin, end);
  });
  for (size_t i = 0; i < entries.size(); ++i) {
    for (const PackedWeight& weight : entries[i].weights)
      if (entries[i].packs) weight.end_packing();
    entries[i].report(nonfinite[i]);
  }
}

}  // namespace fovea::model
