#include "grammar/grammar_constraint.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace fovea::text {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
// Work that each token adds to the allowed work; most tokens need a thousandth of it.
constexpr int64_t kWorkOfToken = 1'000'000;
// Limits of the cache; a mask has a bit for each token of the vocabulary.
constexpr size_t kMostBytes = size_t{4} << 20, kMostMasks = 64, kMostTracks = 512;

}  // namespace

std::string_view JsonVocabulary::Tokens::bytes_of(int32_t id) const {
  if (id < 0 || id >= size) return {};
  const int32_t rank = ranks[static_cast<size_t>(id)];
  return rank < 0 ? std::string_view() : std::string_view(bytes[static_cast<size_t>(rank)]);
}

GrammarConstraint::GrammarConstraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                                     SchemaGrammar grammar, const char* name, bool of_json)
    : vocabulary_(std::move(vocabulary)),
      tokens_(vocabulary_->tokens()),
      grammar_(std::move(grammar)),
      of_json_(of_json),
      automaton_(grammar_.grammar, grammar_.root) {
  check(automaton_.need(automaton_.start()) < Grammar::kNever,
        "{0}: the model's vocabulary cannot represent a text that satisfies it; expected another "
        "{0}",
        name);
}

bool GrammarConstraint::begins(std::string_view head) {
  automaton_.allow(kWorkOfToken);
  return read(automaton_.start(), head) != GrammarAutomaton::kDead;
}

void GrammarConstraint::restrict(const std::string& head, std::span<const int32_t> generated,
                                 int64_t most, std::span<float> all) {
  float* const logits = all.data();
  const int64_t vocabulary = std::ssize(all);
  automaton_.allow(kWorkOfToken);
  const Track& track = track_of(head, generated);
  const int32_t state = track.state;
  const bool dead = state == GrammarAutomaton::kDead;
  const bool limited = most >= 0 && most >= track.need + 1;
  const int64_t left =
      limited ? most - static_cast<int64_t>(generated.size()) : std::numeric_limits<int64_t>::max();
  const std::vector<bool> none;
  const std::vector<bool>& ids = dead ? none : allowed(state, left).ids;
  const auto known = std::min(vocabulary, static_cast<int64_t>(ids.size()));
  std::vector<std::pair<int32_t, float>> ends;
  for (const int32_t end : tokens_.ends) {
    if (end < vocabulary) ends.emplace_back(end, logits[end]);
  }
  for (int64_t i = 0; i < known; ++i) {
    if (!ids[static_cast<size_t>(i)]) logits[i] = kForbidden;
  }
  std::fill(logits + known, logits + vocabulary, kForbidden);
  if (of_json_ && !dead) forbid_repeated_keys(track, logits, vocabulary);
  if (dead || automaton_.accepts(state))
    for (const auto& [end, logit] : ends) logits[end] = logit;
  if (automaton_.bytes() > kMostBytes) forget();
}

// Forbids the tokens that would end a key which the object has already, unless no token remains:
// a limit on the length comes first.
void GrammarConstraint::forbid_repeated_keys(const Track& track, float* logits,
                                             int64_t vocabulary) const {
  std::vector<std::pair<int32_t, float>> forbidden;
  for (const size_t rank : tokens_.quoting) {
    const int32_t id = tokens_.ids[rank];
    if (id >= vocabulary || logits[id] == kForbidden) continue;
    if (!track.keys.repeats(tokens_.bytes[rank])) continue;
    forbidden.emplace_back(id, logits[id]);
    logits[id] = kForbidden;
  }
  if (forbidden.empty()) return;
  const bool any =
      std::any_of(logits, logits + vocabulary, [](float logit) { return logit != kForbidden; });
  for (size_t i = 0; !any && i < forbidden.size(); ++i)
    logits[forbidden[i].first] = forbidden[i].second;
}

// Keeps only the states of the known generations.
void GrammarConstraint::forget() {
  GrammarAutomaton fresh(grammar_.grammar, grammar_.root);
  for (Track& track : tracks_) {
    if (track.state != GrammarAutomaton::kDead) track.state = fresh.adopt(automaton_, track.state);
  }
  automaton_ = std::move(fresh);
  masks_.clear();
}

int32_t GrammarConstraint::read(int32_t state, std::string_view bytes) {
  for (const char c : bytes) {
    if (state == GrammarAutomaton::kDead) break;
    state = automaton_.step(state, static_cast<uint8_t>(c));
  }
  return state;
}

const GrammarConstraint::Track& GrammarConstraint::track_of(const std::string& head,
                                                            std::span<const int32_t> generated) {
  // Finds a known generation that `generated` continues.
  for (Track& track : tracks_) {
    const size_t known = track.generated.size();
    const bool goes_on =
        track.head == head && known <= generated.size() && known > 0 &&
        std::equal(track.generated.begin(), track.generated.end(), generated.begin());
    if (goes_on) return advance(track, generated);
  }
  if (tracks_.size() >= kMostTracks) tracks_.erase(tracks_.begin());
  Track track{head, {}, read(automaton_.start(), head)};
  if (track.state != GrammarAutomaton::kDead) track.need = automaton_.need(track.state);
  if (of_json_) track.keys.read(head);
  tracks_.push_back(std::move(track));
  return advance(tracks_.back(), generated);
}

const GrammarConstraint::Track& GrammarConstraint::advance(Track& track,
                                                           std::span<const int32_t> generated) {
  for (size_t i = track.generated.size(); i < generated.size(); ++i) {
    if (track.state == GrammarAutomaton::kDead) break;
    const std::string_view bytes = tokens_.bytes_of(generated[i]);
    track.state = bytes.empty() ? GrammarAutomaton::kDead : read(track.state, bytes);
    if (track.state != GrammarAutomaton::kDead && of_json_) track.keys.read(bytes);
  }
  track.generated.assign(generated.begin(), generated.end());
  return track;
}

const GrammarConstraint::Allowed& GrammarConstraint::allowed(int32_t state, int64_t left) {
  auto found = masks_.find(state);
  if (found == masks_.end()) {
    if (masks_.size() >= kMostMasks) masks_.clear();
    found = masks_.emplace(state, walk(state, Grammar::kNever)).first;
  }
  // Of the `left` tokens, one leads to the next state and one is the end token.
  if (found->second.most_need + 2 <= left) return found->second;
  hurried_ = walk(state, left - 2);
  return hurried_;
}

// Returns the tokens that lead to a state whose `need` is at most `most_need`.
GrammarConstraint::Allowed GrammarConstraint::walk(int32_t state, int64_t most_need) {
  Allowed out;
  out.ids.assign(static_cast<size_t>(tokens_.size), false);
  std::vector<int32_t> path = {state};  // states after each byte of the current token
  for (size_t i = 0; i < tokens_.ids.size(); ++i) {
    const size_t shared = tokens_.shared[i];
    if (shared >= path.size()) continue;  // begins with a prefix that was rejected
    path.resize(shared + 1);
    const std::string& bytes = tokens_.bytes[i];
    while (path.size() <= bytes.size()) {
      const int32_t next =
          automaton_.step(path.back(), static_cast<uint8_t>(bytes[path.size() - 1]));
      if (next == GrammarAutomaton::kDead) break;
      path.push_back(next);
    }
    if (path.size() <= bytes.size()) continue;
    const int64_t need = automaton_.need(path.back());
    if (need > most_need) continue;
    out.ids[static_cast<size_t>(tokens_.ids[i])] = true;
    out.most_need = std::max(out.most_need, need);
  }
  return out;
}

}  // namespace fovea::text
