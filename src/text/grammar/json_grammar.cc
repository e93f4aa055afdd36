#include "fovea/text/grammar.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "base/float_mode.h"
#include "grammar/grammar_automaton.h"
#include "grammar/json_schema.h"
#include "grammar/key_scanner.h"
#include "grammar/syntax.h"

namespace fovea::text {

// Tokens sorted by their bytes, so that checking all of them reads common prefixes only once.
struct JsonVocabulary::Tokens {
  int64_t size = 0;
  std::vector<int32_t> ends;
  Grammar::Bytes usable;  // bytes that have their own token; the grammar uses only these
  std::vector<int32_t> ids;
  std::vector<std::string> bytes;
  std::vector<uint32_t> shared;  // length of the common prefix with the previous token
  std::vector<int32_t> ranks;    // by id: index in this order; -1 = special or without bytes
  std::vector<size_t> quoting;   // indices in this order of the tokens with a quotation mark
};

JsonVocabulary::JsonVocabulary(const Tokenizer& tokenizer, std::vector<int32_t> ends) {
  check(!ends.empty(), "the model has no end-of-text token; expected one, to end the text");
  auto tokens = std::make_unique<Tokens>();
  tokens->size = tokenizer.size();
  tokens->ends = std::move(ends);
  std::vector<std::pair<std::string, int32_t>> all;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    const bool end = std::find(tokens->ends.begin(), tokens->ends.end(), id) != tokens->ends.end();
    if (end || tokenizer.is_special(id)) continue;
    std::string bytes = tokenizer.bytes_of(id);
    if (bytes.size() == 1) tokens->usable.set(static_cast<uint8_t>(bytes[0]));
    if (!bytes.empty()) all.emplace_back(std::move(bytes), id);
  }
  std::sort(all.begin(), all.end());
  std::string_view before;
  for (auto& [bytes, id] : all) {
    const size_t most = std::min(bytes.size(), before.size());
    const auto differ = std::mismatch(
        bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(most), before.begin());
    tokens->shared.push_back(static_cast<uint32_t>(differ.first - bytes.begin()));
    tokens->ids.push_back(id);
    before = bytes;
  }
  tokens->ranks.assign(static_cast<size_t>(tokens->size), -1);
  for (auto& [bytes, id] : all) {
    tokens->ranks[static_cast<size_t>(id)] = static_cast<int32_t>(tokens->bytes.size());
    if (bytes.find('"') != std::string::npos) tokens->quoting.push_back(tokens->bytes.size());
    tokens->bytes.push_back(std::move(bytes));
  }
  tokens_ = std::move(tokens);
}

JsonVocabulary::~JsonVocabulary() = default;

namespace {

// The tokens that are allowed in a state.
struct Allowed {
  std::vector<bool> ids;
  int64_t most_need = 0;  // the largest `need` after one of these tokens
};

class JsonConstraint {
 public:
  // `name`: of what describes the grammar, for errors.
  JsonConstraint(std::shared_ptr<const JsonVocabulary> vocabulary, SchemaGrammar grammar,
                 int64_t most_tokens, const char* name, bool of_json)
      : vocabulary_(std::move(vocabulary)),
        tokens_(vocabulary_->tokens()),
        grammar_(std::move(grammar)),
        most_tokens_(most_tokens),
        of_json_(of_json),
        automaton_(grammar_.grammar, grammar_.root) {
    check(automaton_.need(automaton_.start()) < Grammar::kNever,
          "{0}: the model's vocabulary cannot represent a text that satisfies it; expected another "
          "{0}",
          name);
    // Ignores the limit if it would truncate even the shortest value.
    if (most_tokens_ < need_with_end(automaton_.start())) most_tokens_ = -1;
  }

  void operator()(std::span<const int32_t> generated, std::span<float> logits) {
    automaton_.allow(kWorkOfToken);
    restrict(generated, logits.data(), std::ssize(logits));
    if (automaton_.bytes() > kMostBytes) forget();
  }

 private:
  struct Track {  // the state after the tokens of a generation
    std::vector<int32_t> generated;
    int32_t state;
    KeyScanner keys = {};
  };

  void restrict(std::span<const int32_t> generated, float* logits, int64_t vocabulary) {
    const Track& track = track_of(generated);
    const int32_t state = track.state;
    const bool dead = state == GrammarAutomaton::kDead;
    const int64_t left = most_tokens_ < 0 ? std::numeric_limits<int64_t>::max()
                                          : most_tokens_ - static_cast<int64_t>(generated.size());
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
    if (!dead && !automaton_.accepts(state)) return;
    for (const auto& [end, logit] : ends) logits[end] = logit;
  }

  // Forbids the tokens that would end a key which the object has already, unless no token remains:
  // a limit on the length comes first.
  void forbid_repeated_keys(const Track& track, float* logits, int64_t vocabulary) const {
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

  static constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  // Work that each token adds to the allowed work; most tokens need a thousandth of it.
  static constexpr int64_t kWorkOfToken = 1'000'000;
  // Limits of the cache; a mask has a bit for each token of the vocabulary.
  static constexpr size_t kMostBytes = size_t{4} << 20, kMostMasks = 64, kMostTracks = 512;

  // Keeps only the states of the known generations.
  void forget() {
    GrammarAutomaton fresh(grammar_.grammar, grammar_.root);
    for (Track& track : tracks_) {
      if (track.state != GrammarAutomaton::kDead)
        track.state = fresh.adopt(automaton_, track.state);
    }
    automaton_ = std::move(fresh);
    masks_.clear();
  }

  int64_t need_with_end(int32_t state) const { return automaton_.need(state) + 1; }

  int32_t read(int32_t state, int32_t id) {
    if (id < 0 || id >= tokens_.size) return GrammarAutomaton::kDead;
    const int32_t rank = tokens_.ranks[static_cast<size_t>(id)];
    if (rank < 0) return GrammarAutomaton::kDead;
    for (const char c : tokens_.bytes[static_cast<size_t>(rank)]) {
      if (state == GrammarAutomaton::kDead) break;
      state = automaton_.step(state, static_cast<uint8_t>(c));
    }
    return state;
  }

  const Track& track_of(std::span<const int32_t> generated) {
    // Finds a known generation that `generated` continues.
    for (Track& track : tracks_) {
      const size_t known = track.generated.size();
      const bool goes_on =
          known <= generated.size() && known > 0 &&
          std::equal(track.generated.begin(), track.generated.end(), generated.begin());
      if (goes_on) return advance(track, generated);
    }
    if (tracks_.size() >= kMostTracks) tracks_.erase(tracks_.begin());
    tracks_.push_back({{}, automaton_.start()});
    return advance(tracks_.back(), generated);
  }

  const Track& advance(Track& track, std::span<const int32_t> generated) {
    for (size_t i = track.generated.size(); i < generated.size(); ++i) {
      if (track.state == GrammarAutomaton::kDead) break;
      track.state = read(track.state, generated[i]);
      if (track.state == GrammarAutomaton::kDead || !of_json_) continue;
      const int32_t rank = tokens_.ranks[static_cast<size_t>(generated[i])];
      track.keys.read(tokens_.bytes[static_cast<size_t>(rank)]);
    }
    track.generated.assign(generated.begin(), generated.end());
    return track;
  }

  const Allowed& allowed(int32_t state, int64_t left) {
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
  Allowed walk(int32_t state, int64_t most_need) {
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

  std::shared_ptr<const JsonVocabulary> vocabulary_;
  const JsonVocabulary::Tokens& tokens_;
  SchemaGrammar grammar_;
  int64_t most_tokens_;
  bool of_json_;  // objects must not repeat a key
  GrammarAutomaton automaton_;
  std::vector<Track> tracks_;
  std::unordered_map<int32_t, Allowed> masks_;
  Allowed hurried_;
};

}  // namespace

namespace {

Constraint constraint_of(std::shared_ptr<const JsonVocabulary> vocabulary, SchemaGrammar grammar,
                         int64_t most_tokens, const char* name, bool of_json = false) {
  auto constraint = std::make_shared<JsonConstraint>(std::move(vocabulary), std::move(grammar),
                                                     most_tokens, name, of_json);
  return [constraint](std::span<const int32_t> generated, std::span<float> logits) {
    (*constraint)(generated, logits);
  };
}

}  // namespace

Constraint json_constraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                           std::string_view schema, int64_t most_tokens) {
  const FloatMode mode;
  SchemaGrammar grammar = schema_grammar(schema, vocabulary->tokens().usable);
  return constraint_of(std::move(vocabulary), std::move(grammar), most_tokens, "schema", true);
}

Constraint gbnf_constraint(std::shared_ptr<const JsonVocabulary> vocabulary, std::string_view text,
                           int64_t most_tokens) {
  SchemaGrammar grammar = gbnf_grammar(text, vocabulary->tokens().usable);
  return constraint_of(std::move(vocabulary), std::move(grammar), most_tokens, "grammar");
}

Constraint regex_constraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                            std::string_view regex, int64_t most_tokens) {
  SchemaGrammar grammar = regex_grammar(regex, vocabulary->tokens().usable);
  return constraint_of(std::move(vocabulary), std::move(grammar), most_tokens, "regex");
}

Constraint choice_constraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                             const std::vector<std::string>& texts, int64_t most_tokens) {
  SchemaGrammar grammar = choice_grammar(texts, vocabulary->tokens().usable);
  return constraint_of(std::move(vocabulary), std::move(grammar), most_tokens, "choice");
}

}  // namespace fovea::text
