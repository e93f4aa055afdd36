#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "base/error.h"
#include "calls/call_grammar.h"
#include "calls/lenient_value.h"
#include "grammar/grammar_constraint.h"

namespace fovea::text {
namespace {

using Generated = std::span<const int32_t>;

// Follows each generation through reasoning, content and calls, and applies what holds there.
class Watcher {
 public:
  Watcher(std::shared_ptr<const JsonVocabulary> vocabulary, const Tokenizer& tokenizer,
          MessageRules rules, MessageLimits limits)
      : vocabulary_(std::move(vocabulary)), rules_(std::move(rules)), limits_(std::move(limits)) {
    const MessageFormat& format = rules_.format;
    if (!format.reasoning_end.empty())
      closing_ = tokenizer.encode(format.reasoning_end, SpecialTokens::parsed);
    longest_ = format.reasoning_begin.size();
    if (!format.reasoning_begin.empty()) opening_ = tokenizer.id_of(format.reasoning_begin);
  }

  // Compiles the grammar of the calls.
  void add_calls(std::vector<std::string>& warnings) {
    const CallFormat& format = *rules_.format.calls;
    SchemaGrammar grammar = call_grammar(format, rules_.functions, limits_.one_call,
                                         vocabulary_->tokens().usable, warnings);
    calls_.emplace(vocabulary_, std::move(grammar), "tools", format.style == ArgumentStyle::json);
    const std::string_view trigger = format.trigger;
    trigger_ = trigger.empty() ? format.head() : std::string(trigger);
    only_first_ = trigger.empty();
    // Marks that content may have too.
    names_first_ = (only_first_ && trigger_ == format.begin) ||
                   std::ranges::any_of(format.frames, [&](const std::string& frame) {
                     return frame.starts_with(trigger_);
                   });
    size_t name = 0;
    for (const CallableFunction& function : rules_.functions)
      name = std::max(name, function.name.size());
    longest_ =
        std::max(longest_, trigger_.size() + name + std::string_view(format.arguments).size());
  }

  void operator()(Generated generated, std::span<float> logits) {
    const Track& track = track_of(generated);
    if (track.phase == Phase::reasoning) return limit_reasoning(track, logits);
    if (track.phase == Phase::content) return;
    const bool may_open = may_open_reasoning(track) && *opening_ < std::ssize(logits);
    const float logit = may_open ? logits[static_cast<size_t>(*opening_)] : 0;
    const Generated rest = generated.subspan(track.begin);
    if (track.phase == Phase::calls) {
      calls_->restrict(track.head, rest, most_after(track), logits);
    } else {
      Constraint& content = contents_[track.begin];
      if (!content) content = limits_.content(most_after(track));
      content(rest, logits);
    }
    if (may_open) logits[static_cast<size_t>(*opening_)] = logit;
  }

 private:
  enum class Phase { reasoning, content, guided, calls };
  struct State {
    Phase phase = Phase::content;
    size_t begin = 0;       // of guided content and of calls: the number of tokens before
    std::string head = {};  // of calls: their text in these tokens
    std::string text = {};  // what a mark may begin in
    int64_t reasoning = 0;  // tokens
    bool any = false;       // the content began with neither reasoning nor a call
    bool reasoned = false;  // the reasoning has ended
    bool opened = false;    // the first token of the message has been read
  };
  struct Track : State {
    std::vector<int32_t> generated = {};
    std::deque<State> earlier = {};  // the states before each of the last tokens
  };

  int64_t most_after(const Track& track) const {
    if (limits_.most_tokens < 0) return -1;
    return std::max<int64_t>(0, limits_.most_tokens - static_cast<int64_t>(track.begin));
  }

  // Returns the track of a generation: one that it continues, or one whose last tokens, which were
  // speculative, it does not have. The tracks used last are the last.
  const Track& track_of(Generated generated) {
    for (size_t i = tracks_.size(); i-- > 0;) {
      const size_t same = common(tracks_[i].generated, generated);
      const size_t beyond = tracks_[i].generated.size() - same;
      if (same == 0 || beyond > tracks_[i].earlier.size()) continue;
      Track track = beyond == 0 ? std::move(tracks_[i]) : before(tracks_[i], beyond);
      if (beyond == 0) tracks_.erase(tracks_.begin() + static_cast<std::ptrdiff_t>(i));
      return add(std::move(track), generated);
    }
    Track track;
    if (rules_.in_reasoning && !rules_.format.reasoning_end.empty())
      track.phase = Phase::reasoning;
    else
      begin_content(track, 0);
    if (track.phase == Phase::content && !rules_.begun.empty()) read_content(track, rules_.begun);
    return add(std::move(track), generated);
  }

  static size_t common(Generated a, Generated b) {
    const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return static_cast<size_t>(differ.first - a.begin());
  }

  // Returns the track before its last `tokens`.
  static Track before(const Track& track, size_t tokens) {
    const size_t kept = track.earlier.size() - tokens;
    Track made{track.earlier[kept]};
    made.generated.assign(track.generated.begin(),
                          track.generated.end() - static_cast<std::ptrdiff_t>(tokens));
    made.earlier.assign(track.earlier.begin(),
                        track.earlier.begin() + static_cast<std::ptrdiff_t>(kept));
    return made;
  }

  const Track& add(Track track, Generated generated) {
    constexpr size_t kMostSpeculative = 64, kMostTracks = 64;
    for (size_t i = track.generated.size(); i < generated.size(); ++i) {
      if (track.earlier.size() > kMostSpeculative) track.earlier.pop_front();
      track.earlier.push_back(track);
      track.generated.push_back(generated[i]);
      read(track, vocabulary_->tokens().bytes_of(generated[i]));
    }
    if (tracks_.size() >= kMostTracks) tracks_.erase(tracks_.begin());
    return tracks_.emplace_back(std::move(track));
  }

  // Content that is restricted from its first token on.
  void begin_content(Track& track, size_t begin) {
    track.begin = begin;
    track.text.clear();
    if (limits_.content)
      track.phase = Phase::guided;
    else if (limits_.calls_required && calls_)
      track.phase = Phase::calls;
    else
      track.phase = Phase::content;
  }

  void read(Track& track, std::string_view bytes) {
    const MessageFormat& format = rules_.format;
    if (track.phase == Phase::reasoning) {
      ++track.reasoning;
      track.text += bytes;
      const size_t end = track.text.find(format.reasoning_end);
      if (end == std::string::npos) return shorten(track, format.reasoning_end.size());
      const std::string rest = track.text.substr(end + format.reasoning_end.size());
      track.reasoned = true;
      begin_content(track, track.generated.size());
      if (track.phase == Phase::content) read_content(track, rest);
      return;
    }
    if (may_open_reasoning(track) && bytes == format.reasoning_begin) {
      track.phase = Phase::reasoning;
      return;
    }
    track.opened = true;
    if (track.phase == Phase::content) read_content(track, bytes);
  }

  // Whether the token read next may open the reasoning, before content that is restricted.
  bool may_open_reasoning(const Track& track) const {
    return opening_ && !track.opened && !track.reasoned &&
           (track.phase == Phase::guided || track.phase == Phase::calls);
  }

  void read_content(Track& track, std::string_view bytes) {
    const MessageFormat& format = rules_.format;
    track.text += bytes;
    const bool anywhere = format.calls != nullptr && !format.calls->frames.empty();
    if (!format.reasoning_begin.empty() && (anywhere || (!track.any && !track.reasoned))) {
      const size_t at = track.text.find(format.reasoning_begin);
      if (at != std::string::npos && (anywhere || after_space(track.text, 0) == at)) {
        track.text.erase(0, at + format.reasoning_begin.size());
        track.phase = Phase::reasoning;
        return;
      }
    }
    if (calls_ && find_calls(track)) return;
    track.any |= track.text.size() - after_space(track.text, 0) > longest_;
    shorten(track, longest_);
  }

  // Returns whether calls begin in the text that was read last.
  bool find_calls(Track& track) {
    size_t at = std::string::npos;
    if (only_first_) {
      const size_t begin = after_space(track.text, 0);
      if (!track.any && begins_calls(std::string_view(track.text).substr(begin))) at = begin;
    } else {
      at = track.text.find(trigger_);
      if (at != std::string::npos && !begins_calls(std::string_view(track.text).substr(at)))
        return false;
    }
    if (at == std::string::npos) return false;
    std::string head = track.text.substr(at);
    if (!calls_->begins(head)) {  // white space that the grammar does not have, or another format
      if (!only_first_) track.text.erase(0, at + trigger_.size());
      return false;
    }
    track.phase = Phase::calls;
    track.begin = track.generated.size();
    track.head = std::move(head);
    return true;
  }

  // Formats without a mark: the text up to the first name, and if this is only a bracket, also the
  // name of a function.
  bool begins_calls(std::string_view text) const {
    if (!text.starts_with(trigger_)) return false;
    if (!names_first_) return true;
    return std::ranges::any_of(rules_.functions, [&](const CallableFunction& function) {
      return text.substr(trigger_.size())
          .starts_with(function.name + rules_.format.calls->arguments);
    });
  }

  static void shorten(Track& track, size_t longest) {
    if (track.text.size() > 2 * longest + 64) track.text.erase(0, track.text.size() - longest);
  }

  void limit_reasoning(const Track& track, std::span<float> logits) const {
    if (limits_.reasoning_tokens < 0 || track.reasoning < limits_.reasoning_tokens) return;
    // The part of the closing mark that is written.
    size_t written = std::min(closing_.size() - 1, track.generated.size());
    while (written > 0 &&
           !std::equal(closing_.begin(), closing_.begin() + static_cast<std::ptrdiff_t>(written),
                       track.generated.end() - static_cast<std::ptrdiff_t>(written)))
      --written;
    const auto next = static_cast<size_t>(closing_[written]);
    for (size_t id = 0; id < logits.size(); ++id)
      if (id != next) logits[id] = -std::numeric_limits<float>::infinity();
  }

  std::shared_ptr<const JsonVocabulary> vocabulary_;
  MessageRules rules_;
  MessageLimits limits_;
  std::vector<int32_t> closing_;  // the tokens of the mark that ends reasoning
  std::optional<GrammarConstraint> calls_;
  std::string trigger_;  // the text from which on the grammar of calls applies
  bool only_first_ = false, names_first_ = false;
  size_t longest_ = 0;                     // the bytes that decide how content begins
  std::optional<int32_t> opening_;         // the token of the mark that opens reasoning
  std::map<size_t, Constraint> contents_;  // of guided content, by the number of tokens before
  std::vector<Track> tracks_;
};

}  // namespace

MessageConstraint message_constraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                                     const Tokenizer& tokenizer, const MessageRules& rules,
                                     const MessageLimits& limits) {
  MessageConstraint made;
  const bool calls = rules.enforced && rules.format.calls != nullptr && !rules.functions.empty();
  if (!calls && limits.reasoning_tokens < 0 && !limits.content) return made;
  const auto watcher = std::make_shared<Watcher>(std::move(vocabulary), tokenizer, rules, limits);
  if (calls) watcher->add_calls(made.warnings);
  made.constrain = [watcher](Generated generated, std::span<float> logits) {
    (*watcher)(generated, logits);
  };
  return made;
}

}  // namespace fovea::text
