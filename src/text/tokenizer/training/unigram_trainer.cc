#include "tokenizer/training/unigram_trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>

#include "base/math.h"
#include "base/threads.h"
#include "tokenizer/models/piece_trie.h"
#include "tokenizer/models/unigram.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

// The constants of sentencepiece's trainer.
constexpr size_t kSeeds = 1000000;
constexpr int kRounds = 2;        // rounds of expectation maximisation between prunings
constexpr double kShrink = 0.75;  // fraction of the pieces that a pruning keeps
constexpr double kLeast = 0.5;    // minimum expected number of occurrences of a kept piece
constexpr double kSpare = 1.1;    // pruning ends at this multiple of the requested number

constexpr double kApart = 1e-4;  // difference between the new scores of removed characters

constexpr double kGone = -std::numeric_limits<double>::infinity();  // score of a removed piece

// Counts are summed as integer multiples of this unit, so that the sum does not depend on the
// order.
constexpr double kUnit = 0x1p-20;

// Returns the derivative of the logarithm of the gamma function, by its asymptotic series.
double digamma(double x) {
  double result = 0;
  for (; x < 7; ++x) result -= 1 / x;
  x -= 0.5;
  const double xx = 1 / x, xx2 = xx * xx, xx4 = xx2 * xx2;
  return result + math::log(x) + xx2 / 24 - 7.0 / 960 * xx4 + 31.0 / 8064 * xx4 * xx2 -
         127.0 / 30720 * xx4 * xx4;
}

// The pieces between two prunings, and their scores.
struct Pieces {
  std::vector<std::string> texts;
  std::vector<double> scores;
  PieceTrie trie;
  double unknown_score = 0;

  Pieces(std::vector<std::string> new_texts, std::vector<double> new_scores)
      : texts(std::move(new_texts)), scores(std::move(new_scores)), trie(texts) {
    set_unknown_score();
  }
  void set_unknown_score() {
    double lowest = 0;
    for (const double score : scores) {
      if (score != kGone) lowest = std::min(lowest, score);
    }
    unknown_score = lowest - kUnknownPenalty;
  }
  size_t count() const {
    return scores.size() - static_cast<size_t>(std::count(scores.begin(), scores.end(), kGone));
  }
};

// All ways to compose a word from pieces.
class Lattice {
 public:
  static constexpr int32_t kUnknown = -1;
  struct Edge {
    uint32_t from, to;  // positions of bytes in the word
    int32_t id;
    double score;
    double weight = 0;  // relative to the best path to the edge's end
  };

  // Builds the lattice of a word, without the piece with the id `excluded`.
  void build(const Pieces& pieces, std::string_view word, int32_t excluded = kUnknown - 1) {
    edges_.clear();
    for (uint32_t from = 0; from < word.size();) {
      const uint32_t character = from + utf8::first(word.substr(from)).bytes;
      bool single = false;
      uint32_t node = PieceTrie::root;
      for (uint32_t to = from; to < word.size();) {
        node = pieces.trie.step(node, word[to++]);
        if (node == PieceTrie::nowhere) break;
        const int32_t id = pieces.trie.id_at(node);
        if (id == PieceTrie::absent || id == excluded) continue;
        const double score = pieces.scores[static_cast<size_t>(id)];
        if (score == kGone) continue;
        edges_.push_back({from, to, id, score});
        single |= to == character;
      }
      if (!single) edges_.push_back({from, character, kUnknown, pieces.unknown_score});
      from = character;
    }
    find_best(word.size());
  }

  double best_score() const { return best_.back().score; }

  // Returns the ids of the best path, from its end to its beginning.
  void best(std::vector<int32_t>& ids) const {
    ids.clear();
    for (size_t at = best_.size() - 1; at > 0; at = edges_[best_[at].edge].from)
      ids.push_back(edges_[best_[at].edge].id);
  }

  // Calls on_piece(id, probability) for the edge of each piece, with the probability that the word
  // contains the piece at this position. Sums over paths are relative to the best path, so that
  // they do not underflow.
  template <class OnPiece>
  void posteriors(OnPiece&& on_piece) {
    const size_t end = best_.size() - 1;
    forward_.assign(end + 1, 0);
    backward_.assign(end + 1, 0);
    forward_[0] = backward_[end] = 1;
    for (Edge& edge : edges_) {
      edge.weight = math::exp(best_[edge.from].score + edge.score - best_[edge.to].score);
      forward_[edge.to] += forward_[edge.from] * edge.weight;
    }
    for (auto edge = edges_.rbegin(); edge != edges_.rend(); ++edge)
      backward_[edge->from] += backward_[edge->to] * edge->weight;
    for (const Edge& edge : edges_) {
      if (edge.id != kUnknown) {
        on_piece(edge.id, forward_[edge.from] * edge.weight * backward_[edge.to] / forward_[end]);
      }
    }
  }

 private:
  struct Best {
    double score = kGone;
    size_t edge = 0;
  };

  void find_best(size_t end) {
    best_.assign(end + 1, {});
    best_[0].score = 0;
    for (size_t i = 0; i < edges_.size(); ++i) {
      const double score = best_[edges_[i].from].score + edges_[i].score;
      if (score > best_[edges_[i].to].score) best_[edges_[i].to] = {score, i};
    }
  }

  std::vector<Edge> edges_;  // ordered by start
  std::vector<Best> best_;   // by position of a byte
  std::vector<double> forward_, backward_;
};

class UnigramTrainer {
 public:
  UnigramTrainer(const WordCounts& words, const UnigramTrainerOptions& options)
      : options_(options) {
    for (const auto& [word, count] : words) cut(word, count);
  }

  std::vector<ScoredPiece> train() {
    start();
    const auto enough = static_cast<size_t>(static_cast<double>(wanted()) * kSpare);
    const double first = math::log(static_cast<double>(pieces_->count()));
    while (true) {
      for (int round = 0; round < kRounds; ++round) maximise(expected());
      const size_t left = pieces_->count();
      if (!report(first, static_cast<double>(left), static_cast<double>(enough))) return {};
      if (left <= enough) break;
      prune(enough);
    }
    return finish();
  }

 private:
  size_t wanted() const { return static_cast<size_t>(options_.pieces); }

  // Splits long words, since their number of paths could exceed the range of a double.
  void cut(std::string_view word, int64_t count) {
    constexpr size_t kPieceBytes = 512;
    while (word.size() > kPieceBytes) {
      size_t end = kPieceBytes - utf8::incomplete_suffix(word.substr(0, kPieceBytes));
      words_.emplace_back(word.substr(0, end), count);
      word.remove_prefix(end);
    }
    words_.emplace_back(word, count);
  }

  void start() {
    std::vector<std::string> texts;
    std::vector<double> scores;
    double sum = 0;
    for (auto& [text, score] : unigram_seeds(words_, std::max(kSeeds, 2 * wanted()))) {
      if (utf8::first(text).bytes == text.size()) characters_.push_back(text);
      texts.push_back(std::move(text));
      scores.push_back(score);
      sum += score;
    }
    for (double& score : scores) score = math::log(score / sum);
    pieces_.emplace(std::move(texts), std::move(scores));
  }

  // Each pruning reduces the number of pieces by a constant factor, so the logarithm of the number
  // falls linearly.
  bool report(double first, double left, double enough) const {
    if (!options_.progress) return true;
    const double all = first - math::log(enough);
    return options_.progress(all > 0 ? std::min(1.0, (first - math::log(left)) / all) : 1.0);
  }

  // Calls use(lattice, count, sums) for each word; `use` adds to the sums, which are one per piece.
  // Returns the total sums, which do not depend on the number of threads.
  template <class Use>
  std::vector<int64_t> sum_over_words(Use&& use) const {
    std::vector<int64_t> sums(pieces_->scores.size());
    std::mutex mutex;
    constexpr int64_t kGrain = 1024;  // words; their work is well above the cost of a thread
    parallel_for(static_cast<int64_t>(words_.size()), kGrain, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> mine(sums.size());
      Lattice lattice;
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        lattice.build(*pieces_, words_[i].first);
        use(lattice, words_[i].second, mine);
      }
      const std::lock_guard lock(mutex);
      for (size_t id = 0; id < sums.size(); ++id) sums[id] += mine[id];
    });
    return sums;
  }

  // Returns the expected number of occurrences of each piece, in units of kUnit.
  std::vector<int64_t> expected() const {
    return sum_over_words([](Lattice& lattice, int64_t count, std::vector<int64_t>& sums) {
      lattice.posteriors([&](int32_t id, double probability) {
        sums[static_cast<size_t>(id)] +=
            std::llround(probability * static_cast<double>(count) / kUnit);
      });
    });
  }

  // Sets the scores from expected counts. Uses digamma instead of the logarithm: like a sparse
  // prior, digamma favours few pieces
  // (https://cs.stanford.edu/~pliang/papers/tutorial-acl2007-talk.pdf).
  void maximise(const std::vector<int64_t>& expected) {
    double sum = 0;
    const auto stays = [&](size_t id) {
      return pieces_->scores[id] != kGone && static_cast<double>(expected[id]) * kUnit >= kLeast;
    };
    for (size_t id = 0; id < expected.size(); ++id) {
      if (stays(id)) sum += static_cast<double>(expected[id]) * kUnit;
    }
    const double log_sum = digamma(sum);
    for (size_t id = 0; id < expected.size(); ++id) {
      pieces_->scores[id] =
          stays(id) ? digamma(static_cast<double>(expected[id]) * kUnit) - log_sum : kGone;
    }
    pieces_->set_unknown_score();
  }

  // Returns the pieces that replace a removed piece; empty if it is a single character. Sets `best`
  // to false, and returns no pieces, if the best path for its text already consists of other
  // pieces.
  std::vector<int32_t> alternative(size_t id, Lattice& lattice, bool& best) const {
    std::vector<int32_t> ids;
    best = true;
    const std::string& text = pieces_->texts[id];
    if (utf8::first(text).bytes == text.size()) return ids;
    lattice.build(*pieces_, text, static_cast<int32_t>(id));
    best = lattice.best_score() <= pieces_->scores[id];
    if (best) lattice.best(ids);
    return ids;
  }

  void prune(size_t enough) {
    const std::vector<int64_t> uses =
        sum_over_words([](Lattice& lattice, int64_t count, std::vector<int64_t>& sums) {
          thread_local std::vector<int32_t> ids;
          lattice.best(ids);
          for (const int32_t id : ids) {
            if (id != Lattice::kUnknown) sums[static_cast<size_t>(id)] += count;
          }
        });
    // The loss of likelihood if a piece is removed; infinity for pieces that must be kept,
    // -infinity for those that are removed in any case.
    std::vector<double> losses(uses.size(), kGone);
    double sum = 0;
    for (const int64_t count : uses) sum += static_cast<double>(count);
    parallel_for(static_cast<int64_t>(uses.size()), 1024, [&](int64_t begin, int64_t end) {
      Lattice lattice;
      for (auto id = static_cast<size_t>(begin); id < static_cast<size_t>(end); ++id) {
        if (pieces_->scores[id] != kGone) losses[id] = loss(id, uses, sum, lattice);
      }
    });
    const size_t stay =
        std::max(enough, static_cast<size_t>(static_cast<double>(pieces_->count()) * kShrink));
    keep(losses, stay);
  }

  double loss(size_t id, const std::vector<int64_t>& uses, double sum, Lattice& lattice) const {
    bool best = true;
    const std::vector<int32_t> instead = alternative(id, lattice, best);
    const auto used = static_cast<double>(uses[id]);
    if (used == 0 && (!best || !instead.empty())) return kGone;
    if (instead.empty()) return -kGone;
    const double log_sum = math::log(sum + used * static_cast<double>(instead.size() - 1));
    double other = 0;
    for (const int32_t one : instead) {
      const double before =
          one == Lattice::kUnknown ? 0 : static_cast<double>(uses[static_cast<size_t>(one)]);
      other += math::log(before + used) - log_sum;
    }
    return used * (math::log(used) - math::log(sum) - other);
  }

  void keep(const std::vector<double>& losses, size_t count) {
    std::vector<size_t> order;
    for (size_t id = 0; id < losses.size(); ++id) {
      if (losses[id] != kGone) order.push_back(id);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return losses[a] > losses[b]; });
    if (order.size() > count) order.resize(count);
    std::vector<std::string> texts;
    std::vector<double> scores;
    for (const size_t id : order) {
      texts.push_back(std::move(pieces_->texts[id]));
      scores.push_back(pieces_->scores[id]);
    }
    pieces_.emplace(std::move(texts), std::move(scores));
  }

  // Returns all characters, and the best of the other pieces.
  std::vector<ScoredPiece> finish() const {
    double lowest = pieces_->unknown_score + kUnknownPenalty;
    std::vector<ScoredPiece> chosen, others;
    for (const std::string& character : characters_) {
      const int32_t id = pieces_->trie.find(character);
      const double score =
          id == PieceTrie::absent ? kGone : pieces_->scores[static_cast<size_t>(id)];
      chosen.emplace_back(character, score);
      if (score != kGone) continue;
      chosen.back().second = lowest;
      lowest -= kApart;
    }
    for (size_t id = 0; id < pieces_->texts.size(); ++id) {
      const std::string& text = pieces_->texts[id];
      if (pieces_->scores[id] != kGone && utf8::first(text).bytes < text.size())
        others.emplace_back(text, pieces_->scores[id]);
    }
    const auto better = [](const ScoredPiece& a, const ScoredPiece& b) {
      return a.second > b.second;
    };
    std::stable_sort(others.begin(), others.end(), better);
    const size_t room = wanted() > chosen.size() ? wanted() - chosen.size() : 0;
    others.resize(std::min(others.size(), room));
    chosen.insert(chosen.end(), others.begin(), others.end());
    std::stable_sort(chosen.begin(), chosen.end(), better);
    return chosen;
  }

  const UnigramTrainerOptions& options_;
  WordCounts words_;
  std::vector<std::string> characters_;
  std::optional<Pieces> pieces_;
};

}  // namespace

std::vector<ScoredPiece> train_unigram(const WordCounts& words,
                                       const UnigramTrainerOptions& options) {
  return UnigramTrainer(words, options).train();
}

}  // namespace fovea::text
