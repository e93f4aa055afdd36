#include "checkpoint/packing_queue.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/threads.h"

namespace fovea {
namespace {

// The packed bytes of a piece of work: large enough to release the pages of a file with few system
// calls, small enough for threads to finish at the same time.
constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

void PackingQueue::add(std::vector<Matrix> matrices, Report report) {
  entries_.push_back({std::move(matrices), std::move(report)});
}

void PackingQueue::run() {
  struct Piece {
    size_t entry;
    Matrix* matrix;
    int64_t begin, end;
  };
  std::vector<Piece> pieces;
  std::vector<Entry> entries = std::exchange(entries_, {});
  for (size_t i = 0; i < entries.size(); ++i) {
    for (Matrix& matrix : entries[i].matrices) {
      const int64_t panels = panels_of(matrix.weight.matrix());
      const auto count = static_cast<int64_t>(matrix.weight.bytes() / kPieceBytes + 1);
      const int64_t step = (panels + count - 1) / count;
      for (int64_t begin = 0; begin < panels; begin += step)
        pieces.push_back({i, &matrix, begin, std::min(panels, begin + step)});
    }
  }
  std::vector<std::atomic<int64_t>> nonfinite(entries.size());
  parallel_tasks(std::ssize(pieces), [&](int64_t index) {
    const Piece& piece = pieces[static_cast<size_t>(index)];
    nonfinite[piece.entry] += piece.matrix->fill(piece.matrix->weight, piece.begin, piece.end);
  });
  for (size_t i = 0; i < entries.size(); ++i) entries[i].report(nonfinite[i]);
}

}  // namespace fovea
