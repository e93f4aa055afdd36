#include "metrics/ter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "metrics/words.h"

namespace fovea::infer {
namespace {

// The limits of Tercom, and the last one of sacrebleu.
constexpr size_t kLongestMove = 10, kFarthestMove = 50, kBeam = 25;
constexpr int64_t kMostMovesTried = 1000;

using WordIds = std::vector<int32_t>;

// What happens to a word on the way from the hypothesis to the reference.
enum class Edit : uint8_t { keep, replace, remove, insert };

struct Edits {
  int64_t count = 0;
  std::vector<Edit> path;
};

// The edits between hypotheses of one length and a reference, found in a band around the diagonal.
class BandedDistance {
 public:
  BandedDistance(const WordIds& reference, size_t rows)
      : reference_(reference),
        columns_(reference.size() + 1),
        rows_(rows),
        cells_((rows + 1) * columns_) {}

  Edits operator()(const WordIds& hypothesis) {
    std::fill(cells_.begin(), cells_.end(), Cell{kFar, Edit::insert});
    for (size_t j = 0; j < columns_; ++j) at(0, j) = {static_cast<int64_t>(j), Edit::insert};
    const double slope =
        rows_ == 0 ? 1 : static_cast<double>(reference_.size()) / static_cast<double>(rows_);
    // Rows of a steep band must overlap.
    const size_t beam =
        double{kBeam} < slope / 2 ? static_cast<size_t>(std::ceil(slope / 2 + kBeam)) : kBeam;
    for (size_t i = 1; i <= rows_; ++i) {
      const auto diagonal = static_cast<size_t>(std::floor(static_cast<double>(i) * slope));
      const size_t begin = diagonal > beam ? diagonal - beam : 0;
      const size_t end = i == rows_ ? columns_ : std::min(columns_, diagonal + beam);
      for (size_t j = begin; j < end; ++j) at(i, j) = best(hypothesis, i, j);
    }
    return {at(rows_, columns_ - 1).cost, path()};
  }

 private:
  struct Cell {
    int64_t cost;
    Edit last;
  };
  static constexpr int64_t kFar = int64_t{1} << 50;

  Cell& at(size_t i, size_t j) { return cells_[i * columns_ + j]; }

  // Of equal costs, a kept or replaced word comes first, then a removed one.
  Cell best(const WordIds& hypothesis, size_t i, size_t j) {
    const Cell removed{at(i - 1, j).cost + 1, Edit::remove};
    if (j == 0) return removed;
    const bool same = hypothesis[i - 1] == reference_[j - 1];
    Cell cell{at(i - 1, j - 1).cost + (same ? 0 : 1), same ? Edit::keep : Edit::replace};
    if (removed.cost < cell.cost) cell = removed;
    if (at(i, j - 1).cost + 1 < cell.cost) cell = {at(i, j - 1).cost + 1, Edit::insert};
    return cell;
  }

  std::vector<Edit> path() {
    std::vector<Edit> edits;
    for (size_t i = rows_, j = columns_ - 1; i > 0 || j > 0;) {
      edits.push_back(at(i, j).last);
      if (edits.back() != Edit::insert) --i;
      if (edits.back() != Edit::remove) --j;
    }
    std::reverse(edits.begin(), edits.end());
    return edits;
  }

  const WordIds& reference_;
  const size_t columns_, rows_;
  std::vector<Cell> cells_;
};

// Which words of both texts are wrong, and for each word of the reference the last word of the
// hypothesis up to it, as an index; -1 before the first one.
struct Alignment {
  std::vector<char> wrong, reference_wrong;
  std::vector<int64_t> at;

  explicit Alignment(const std::vector<Edit>& path) {
    for (const Edit edit : path) {
      if (edit != Edit::insert) wrong.push_back(edit != Edit::keep);
      if (edit == Edit::remove) continue;
      reference_wrong.push_back(edit != Edit::keep);
      at.push_back(std::ssize(wrong) - 1);
    }
  }
};

bool any_wrong(const std::vector<char>& wrong, size_t begin, size_t length) {
  const auto first = wrong.begin() + static_cast<int64_t>(begin);
  return std::count(first, first + static_cast<int64_t>(length), 1) > 0;
}

// Moves `length` words from `begin` on to before word `target`; if that is one of them, as many
// words forward as they are moved into themselves.
WordIds moved(const WordIds& words, size_t begin, size_t length, size_t target) {
  WordIds rest = words;
  const auto from = rest.begin() + static_cast<int64_t>(begin);
  rest.erase(from, from + static_cast<int64_t>(length));
  const size_t to = target <= begin + length ? target : target - length;
  const auto first = words.begin() + static_cast<int64_t>(begin);
  rest.insert(rest.begin() + static_cast<int64_t>(std::min(to, rest.size())), first,
              first + static_cast<int64_t>(length));
  return rest;
}

// Finds the move after which the fewest edits remain.
class MoveSearch {
 public:
  MoveSearch(const WordIds& reference, BandedDistance& distance)
      : reference_(reference), distance_(distance) {}

  // Returns the words after the best move; unset if no move saves an edit, or if enough were tried.
  std::optional<WordIds> next(const WordIds& words) {
    const Edits edits = distance_(words);
    const Alignment alignment(edits.path);
    best_.reset();
    for (size_t i = 0; i < words.size() && tried_ < kMostMovesTried; ++i)
      for (size_t j = 0; j < reference_.size() && tried_ < kMostMovesTried; ++j) {
        if ((i > j ? i - j : j - i) > kFarthestMove) continue;
        for (size_t length = 1;
             length <= kLongestMove && i + length <= words.size() &&
             j + length <= reference_.size() &&
             words[i + length - 1] == reference_[j + length - 1] && tried_ < kMostMovesTried;
             ++length)
          try_moves(words, i, j, length, edits.count, alignment);
      }
    if (tried_ >= kMostMovesTried || !best_ || std::get<0>(best_->rank) <= 0) return std::nullopt;
    return std::move(best_->words);
  }

 private:
  struct Move {
    // Edits saved, length, position and target: Tercom prefers the most, the longest, the first.
    std::tuple<int64_t, int64_t, int64_t, int64_t> rank;
    WordIds words;
  };

  // Tries to move words [i, i + length) to each position next to words [j, j + length) of the
  // reference.
  void try_moves(const WordIds& words, size_t i, size_t j, size_t length, int64_t edits,
                 const Alignment& alignment) {
    if (!any_wrong(alignment.wrong, i, length) || !any_wrong(alignment.reference_wrong, j, length))
      return;
    const int64_t position = alignment.at[j];
    if (position >= static_cast<int64_t>(i) && position < static_cast<int64_t>(i + length)) return;
    int64_t before = -1;
    for (size_t k = j; k <= j + length; ++k) {  // after word k - 1 of the reference
      const int64_t target = k == 0 ? 0 : alignment.at[k - 1] + 1;
      if (target == before) continue;
      before = target;
      WordIds other = moved(words, i, length, static_cast<size_t>(target));
      const std::tuple rank(edits - distance_(other).count, static_cast<int64_t>(length),
                            -static_cast<int64_t>(i), -target);
      ++tried_;
      if (!best_ || rank > best_->rank) best_ = {rank, std::move(other)};
    }
  }

  const WordIds& reference_;
  BandedDistance& distance_;
  std::optional<Move> best_;
  int64_t tried_ = 0;
};

int64_t edits_between(WordIds words, const WordIds& reference) {
  if (reference.empty()) return std::ssize(words);
  BandedDistance distance(reference, words.size());
  MoveSearch search(reference, distance);
  int64_t moves = 0;
  while (std::optional<WordIds> better = search.next(words)) {
    words = std::move(*better);
    ++moves;
  }
  return moves + distance(words).count;
}

}  // namespace

void Ter::add(std::string_view hypothesis, std::string_view reference) {
  std::map<std::string_view, int32_t> numbers;
  const auto ids = [&](const std::string& text) {
    WordIds words;
    for (const std::string_view word : words_of(text))
      words.push_back(numbers.emplace(word, static_cast<int32_t>(numbers.size())).first->second);
    return words;
  };
  const std::string ours = lower_case(hypothesis), theirs = lower_case(reference);
  const WordIds words = ids(ours), reference_words = ids(theirs);
  edits_ += edits_between(words, reference_words);
  words_ += std::ssize(reference_words);
}

double Ter::score() const {
  if (words_ == 0) return edits_ > 0 ? 100 : 0;
  return 100 * static_cast<double>(edits_) / static_cast<double>(words_);
}

}  // namespace fovea::infer
