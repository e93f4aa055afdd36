#include "generate/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/math.h"
#include "generate/sampler.h"

namespace fovea {

BeamSearch::BeamSearch(const GenerationRules& rules, const GenerateOptions& options,
                       const std::vector<int32_t>& prompt)
    : rules_(rules),
      options_(options),
      prompt_(prompt),
      running_{{.counts = TokenCounts(options.sampling, prompt)}},
      sources_{0} {}

// Returns the minimum log-probability, rounded down, that a token needs to be among the `kept` best
// continuations. `before` is the score of its hypothesis. Forbidden tokens have -infinity, which is
// below any result.
float BeamSearch::lowest(const std::vector<Continuation>& best, size_t kept, double before) {
  constexpr float kLeast = std::numeric_limits<float>::lowest();
  if (best.size() < kept) return kLeast;
  return std::nextafter(static_cast<float>(best.front().score - before), kLeast);
}

bool BeamSearch::better(const Continuation& a, const Continuation& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.source != b.source ? a.source < b.source : a.id < b.id;
}

// Returns twice the number of beams, or more if there are several end tokens: enough that `beams`
// hypotheses continue even if all others end.
size_t BeamSearch::kept() const {
  const auto ends = std::ssize(rules_.ends) * !options_.ignore_end + std::ssize(options_.stop_ids);
  return static_cast<size_t>(std::max<int64_t>(2, 1 + ends) * options_.beams);
}

std::vector<BeamSearch::Continuation> BeamSearch::best_after(size_t source, const float* logits,
                                                             int64_t vocabulary) const {
  const size_t most = kept();
  const auto all = static_cast<float>(log_sum(logits, vocabulary));
  if (!std::isfinite(all))
    fail(ErrorKind::Failed, "generate: the model's logits are not finite; expected finite weights");
  std::vector<float> row(logits, logits + vocabulary);
  for (float& x : row) x -= all;
  restrain(row.data(), vocabulary, {rules_, options_, prompt_, running_[source].counts},
           running_[source].ids);
  const double before = running_[source].score;
  std::vector<Continuation> best;  // a heap with the worst first
  best.reserve(most);
  float least = lowest(best, most, before);
  for (size_t id = 0; id < row.size(); ++id) {
    if (!(row[id] >= least)) continue;  // true for nearly all tokens
    const Continuation c{before + double{row[id]}, static_cast<int64_t>(source),
                         static_cast<int32_t>(id), row[id]};
    if (best.size() == most && !better(c, best.front())) continue;
    if (best.size() == most) {
      std::pop_heap(best.begin(), best.end(), better);
      best.pop_back();
    }
    best.push_back(c);
    std::push_heap(best.begin(), best.end(), better);
    least = lowest(best, most, before);
  }
  return best;
}

BeamSearch::Hypothesis BeamSearch::extended(const Continuation& c) const {
  Hypothesis hypothesis = running_[static_cast<size_t>(c.source)];
  hypothesis.ids.push_back(c.id);
  hypothesis.counts.follow(hypothesis.ids);
  hypothesis.logprobs.push_back(c.logprob);
  hypothesis.score = static_cast<float>(c.score);
  return hypothesis;
}

void BeamSearch::finish(const Continuation& c, bool ended) {
  Hypothesis hypothesis = extended(c);
  hypothesis.ended = ended;
  hypothesis.score /= math::pow(static_cast<float>(length_ + 1), options_.length_penalty);
  const auto place =
      std::upper_bound(finished_.begin(), finished_.end(), hypothesis,
                       [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  finished_.insert(place, std::move(hypothesis));
  if (std::ssize(finished_) > options_.beams) finished_.pop_back();
}

// Returns whether an unfinished hypothesis can still be among the best; see EarlyStopping.
bool BeamSearch::can_improve() const {
  if (!full()) return true;
  if (options_.early_stopping == EarlyStopping::yes) return false;
  // Further tokens only lower the sum, so the greatest length gives the best possible score.
  const bool longest =
      options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
  const auto length = static_cast<float>(longest ? options_.max_tokens : length_);
  const float possible = running_.front().score / math::pow(length, options_.length_penalty);
  return possible > finished_.back().score;
}

void BeamSearch::advance(const std::vector<std::vector<Continuation>>& found) {
  std::vector<Continuation> all;
  for (const auto& of_one : found) all.insert(all.end(), of_one.begin(), of_one.end());
  std::sort(all.begin(), all.end(), better);
  all.resize(std::min(all.size(), kept()));
  const bool last = length_ + 1 == options_.max_tokens;
  const bool closed = options_.early_stopping == EarlyStopping::yes && full();
  std::vector<Hypothesis> next;
  sources_.clear();
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const Continuation& c = all[rank];
    const bool ended = ends(rules_, options_, c.id);
    if (ended || last) {
      // An end that is not among the first `beams` continuations is dropped.
      if (std::cmp_less(rank, options_.beams) && !closed) finish(c, ended);
    } else if (std::ssize(next) < options_.beams) {
      next.push_back(extended(c));
      sources_.push_back(c.source);
    }
  }
  running_ = std::move(next);
  ++length_;
  done_ = last || running_.empty() || !can_improve();
}

}  // namespace fovea
