#include "generate/beam_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "base/math.h"
#include "generate/sampler.h"

namespace fovea::infer {

const char* name_of(BeamFate fate) {
  constexpr const char* kNames[] = {"continued", "finished", "dropped", "displaced", "stopped"};
  return kNames[static_cast<size_t>(fate)];
}

BeamSearch::BeamSearch(const GenerationRules& rules, const GenerateOptions& options,
                       const std::vector<int32_t>& prompt, const RequiredTexts* required,
                       const std::vector<int32_t>* source)
    : rules_(rules),
      options_(options),
      prompt_(prompt),
      source_(source),
      required_(required),
      size_(options.beams / options.beam_groups),
      groups_(static_cast<size_t>(options.beam_groups)),
      running_{{.counts = TokenCounts(options.sampling, prompt)}},
      sources_{0} {}

// Returns the minimum log-probability, rounded down, that a token needs to be among the `kept` best
// continuations. `before` is the score of its hypothesis. Forbidden tokens have -infinity, which is
// below any result.
float BeamSearch::lowest(const Continuations& best, size_t kept, double before) {
  constexpr float kLeast = std::numeric_limits<float>::lowest();
  if (best.size() < kept) return kLeast;
  return std::nextafter(static_cast<float>(best.front().score - before), kLeast);
}

bool BeamSearch::better(const Continuation& a, const Continuation& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.source != b.source ? a.source < b.source : a.id < b.id;
}

// Returns twice the number of beams of a group, or more if there are several end tokens: enough
// that all of its beams continue even if all other hypotheses end.
size_t BeamSearch::kept() const {
  const auto ends = std::ssize(rules_.ends) * !options_.ignore_end + std::ssize(options_.stop_ids);
  return static_cast<size_t>(std::max<int64_t>(2, 1 + ends) * size_);
}

// Forbids tokens that continue a required word, the end before the required texts, and all other
// tokens when there is only room for the texts.
void BeamSearch::require(const RequiredTexts::Progress& progress, float* row,
                         int64_t vocabulary) const {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  if (progress.ends_word)
    for (const int32_t id : required_->continuing())
      if (id < vocabulary) row[id] = kNever;
  if (progress.left == 0) return;
  if (options_.max_tokens >= 0 && options_.max_tokens - length_ <= progress.left) {
    std::vector<std::pair<int32_t, float>> allowed;
    for (const int32_t id : progress.onward) allowed.emplace_back(id, row[id]);
    const bool possible = std::any_of(allowed.begin(), allowed.end(),
                                      [](const auto& one) { return one.second > kNever; });
    if (!possible) return;
    std::fill(row, row + vocabulary, kNever);
    for (const auto& [id, logprob] : allowed) row[id] = logprob;
  }
  for (const auto* ids : {&rules_.ends, &options_.stop_ids})
    for (const int32_t id : *ids)
      if (id >= 0 && id < vocabulary) row[id] = kNever;
}

std::vector<BeamSearch::Continuation> BeamSearch::best_after(size_t source, const float* logits,
                                                             int64_t vocabulary) const {
  // Penalties of groups can exclude as many tokens as the other groups have beams.
  const size_t most = kept() + static_cast<size_t>(options_.beams - size_);
  const auto all = static_cast<float>(log_sum(logits, vocabulary));
  if (!std::isfinite(all))
    fail(ErrorKind::Failed, "generate: the model's logits are not finite; expected finite weights");
  std::vector<float> row(logits, logits + vocabulary);
  for (float& x : row) x -= all;
  const Hypothesis& before = running_[source];
  restrain(row.data(), vocabulary, {rules_, options_, prompt_, before.counts, source_}, before.ids);
  RequiredTexts::Progress progress;
  if (required_ != nullptr) progress = required_->after(before.ids);
  require(progress, row.data(), vocabulary);
  Continuations best;  // a heap with the worst first
  best.reserve(most + progress.next.size());
  const auto continuation = [&](int32_t id) {
    const float logprob = row[static_cast<size_t>(id)];
    return Continuation{double{before.score} + double{logprob}, static_cast<int64_t>(source), id,
                        logprob};
  };
  float least = lowest(best, most, before.score);
  for (size_t id = 0; id < row.size(); ++id) {
    if (!(row[id] >= least)) continue;  // true for nearly all tokens
    const Continuation c = continuation(static_cast<int32_t>(id));
    if (best.size() == most && !better(c, best.front())) continue;
    if (best.size() == most) {
      std::pop_heap(best.begin(), best.end(), better);
      best.pop_back();
    }
    best.push_back(c);
    std::push_heap(best.begin(), best.end(), better);
    least = lowest(best, most, before.score);
  }
  for (const int32_t id : progress.next) {
    const auto is = [&](const Continuation& c) { return c.id == id; };
    const bool possible = std::isfinite(row[static_cast<size_t>(id)]);
    if (possible && std::none_of(best.begin(), best.end(), is)) best.push_back(continuation(id));
  }
  return best;
}

BeamSearch::Hypothesis BeamSearch::extended(const Continuation& c, size_t group) const {
  Hypothesis hypothesis = running_[static_cast<size_t>(c.source)];
  hypothesis.ids.push_back(c.id);
  hypothesis.counts.follow(hypothesis.ids);
  hypothesis.logprobs.push_back(c.logprob);
  hypothesis.score = static_cast<float>(c.score);
  hypothesis.group = group;
  return hypothesis;
}

int64_t BeamSearch::recorded(const Continuation& c, BeamFate fate) {
  if (!options_.beam_tree) return -1;
  const int64_t parent = running_[static_cast<size_t>(c.source)].node;
  tree_.push_back({parent, length_, c.id, c.logprob, static_cast<float>(c.score), fate});
  return std::ssize(tree_) - 1;
}

void BeamSearch::follow(const Continuation& c, size_t group, std::vector<Hypothesis>& next,
                        std::vector<int64_t>& sources) {
  next.push_back(extended(c, group));
  next.back().node = recorded(c, BeamFate::continued);
  sources.push_back(c.source);
}

void BeamSearch::finish(const Continuation& c, bool ended, size_t group) {
  Hypothesis hypothesis = extended(c, group);
  hypothesis.ended = ended;
  hypothesis.score /= math::pow(static_cast<float>(length_ + 1), options_.length_penalty);
  hypothesis.node = recorded(c, BeamFate::finished);
  if (options_.beam_tree) tree_.back().score = hypothesis.score;
  std::vector<Hypothesis>& finished = groups_[group].finished;
  const auto at =
      std::upper_bound(finished.begin(), finished.end(), hypothesis,
                       [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  finished.insert(at, std::move(hypothesis));
  if (std::ssize(finished) <= size_) return;
  if (options_.beam_tree)
    tree_[static_cast<size_t>(finished.back().node)].fate = BeamFate::displaced;
  finished.pop_back();
}

// Returns whether an unfinished hypothesis can still be among the best; see EarlyStopping.
bool BeamSearch::can_improve(const Group& group, const Hypothesis& best) const {
  if (!full(group)) return true;
  if (options_.early_stopping == EarlyStopping::yes) return false;
  // Further tokens only lower the sum, so the greatest length gives the best possible score.
  const bool longest =
      options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
  const auto length = static_cast<float>(longest ? options_.max_tokens : length_);
  const float possible = best.score / math::pow(length, options_.length_penalty);
  return possible > group.finished.back().score;
}

// Returns the continuations of the hypotheses of a group, best first, with the penalty for the
// tokens that earlier groups have taken at this step (Vijayakumar et al. 2018, eq. 5).
BeamSearch::Continuations BeamSearch::of_group(const std::vector<Continuations>& found,
                                               size_t group,
                                               const std::map<int32_t, int64_t>& taken) const {
  Continuations all;
  for (size_t source = 0; source < found.size(); ++source)
    if (length_ == 0 || running_[source].group == group)
      all.insert(all.end(), found[source].begin(), found[source].end());
  for (Continuation& c : all) {
    const auto times = taken.find(c.id);
    if (times == taken.end()) continue;
    const double before = c.score - double{c.logprob};
    c.logprob -= options_.diversity_penalty * static_cast<float>(times->second);
    c.score = before + double{c.logprob};
  }
  std::sort(all.begin(), all.end(), better);
  return all;
}

// Selects the hypotheses of a group that continue, and finishes others.
void BeamSearch::select(Continuations all, size_t group, std::vector<Hypothesis>& next,
                        std::vector<int64_t>& sources, std::map<int32_t, int64_t>& taken) {
  all.resize(std::min(all.size(), kept()));
  const bool last = length_ + 1 == options_.max_tokens;
  const bool closed = options_.early_stopping == EarlyStopping::yes && full(groups_[group]);
  int64_t continuing = 0;  // hypotheses that no end token ends
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const Continuation& c = all[rank];
    const bool ended = ends(rules_, options_, c.id);
    if (ended || last) {
      // An end that is not among the first continuations is dropped.
      if (std::cmp_less(rank, size_) && !closed)
        finish(c, ended, group);
      else
        recorded(c, BeamFate::dropped);
      if (!ended && continuing++ < size_) ++taken[c.id];
    } else if (continuing < size_) {
      ++continuing;
      ++taken[c.id];
      follow(c, group, next, sources);
    } else {
      recorded(c, BeamFate::dropped);
    }
  }
}

// Selects hypotheses in turn from those with the most tokens of the required texts, with one token
// fewer, and so on (Post and Vilar 2018, section 3), so that hypotheses that begin an unlikely text
// remain.
void BeamSearch::select_required(const Continuations& all, std::vector<Hypothesis>& next,
                                 std::vector<int64_t>& sources) {
  std::map<int64_t, Continuations, std::greater<>> banks;  // by the number of tokens
  for (const Continuation& c : all)
    banks[required_->done_after(running_[static_cast<size_t>(c.source)].ids, c.id)].push_back(c);
  const bool last = length_ + 1 == options_.max_tokens;
  Continuations chosen;
  for (bool more = true; more && std::ssize(chosen) < size_;) {
    more = false;
    for (auto& [tokens, bank] : banks) {
      if (bank.empty() || std::ssize(chosen) == size_) continue;
      const Continuation c = bank.front();
      bank.erase(bank.begin());
      more = true;
      if (last || ends(rules_, options_, c.id))
        finish(c, !last, 0);
      else
        chosen.push_back(c);
      if (last && full(groups_[0])) return;
    }
  }
  std::sort(chosen.begin(), chosen.end(), better);
  for (const Continuation& c : chosen) follow(c, 0, next, sources);
  Continuations rest;
  for (const auto& [tokens, bank] : banks) rest.insert(rest.end(), bank.begin(), bank.end());
  std::sort(rest.begin(), rest.end(), better);
  rest.resize(std::min(rest.size(), static_cast<size_t>(size_)));
  for (const Continuation& c : rest) recorded(c, BeamFate::dropped);
}

void BeamSearch::advance(const std::vector<Continuations>& found) {
  std::vector<Hypothesis> next;
  std::vector<int64_t> sources;
  std::map<int32_t, int64_t> taken;  // tokens of this step, and how often
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].done) continue;
    Continuations all = of_group(found, g, taken);
    if (required_ != nullptr)
      select_required(all, next, sources);
    else
      select(std::move(all), g, next, sources, taken);
  }
  running_ = std::move(next);
  sources_ = std::move(sources);
  ++length_;
  const bool last = length_ == options_.max_tokens;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto best = std::find_if(running_.begin(), running_.end(),
                                   [&](const Hypothesis& one) { return one.group == g; });
    Group& group = groups_[g];
    group.done = last || best == running_.end() || !can_improve(group, *best);
  }
  // The hypotheses of groups that are done do not continue.
  for (size_t i = running_.size(); i-- > 0;) {
    if (!groups_[running_[i].group].done) continue;
    if (options_.beam_tree) tree_[static_cast<size_t>(running_[i].node)].fate = BeamFate::stopped;
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    sources_.erase(sources_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  done_ = running_.empty();
}

std::vector<BeamSearch::Hypothesis> BeamSearch::best() const {
  std::vector<Hypothesis> all;
  for (const Group& group : groups_)
    all.insert(all.end(), group.finished.begin(), group.finished.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  return all;
}

}  // namespace fovea::infer
