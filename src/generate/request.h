#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "cache/kv_cache.h"
#include "fovea/engine.h"
#include "generate/answer.h"
#include "generate/beam_search.h"
#include "generate/drafter.h"
#include "generate/sampler.h"

namespace fovea {

// A text under way: `ids` is what it consists of, of which the first text.length are in the cache.
// Reading a prompt, drawing token by token and reading again after the pages were taken away are
// the same thing: the rest is read, then the next token is drawn.
struct Branch {
  CachedText text;
  std::vector<int32_t> ids;
  int64_t guesses = 0;  // ids at the end that are only guessed
  std::shared_ptr<Drafter::Text> draft = {};
  int64_t answer = 0;
  bool done = false;

  int64_t pending() const { return done ? 0 : std::ssize(ids) - text.length; }
};

// What a request is made of, besides its options.
struct Task {
  uint64_t number = 0;
  std::vector<int32_t> prompt;
  GenerateOptions options;
  Engine::Sink sink;
  bool slide = false;  // past the context forget the oldest half, instead of ending
  Watch watch = {};
};

// Tokens that each of so many texts may add to a beginning that they share, in so many pages.
int64_t room_in(int64_t pages, int64_t beginning, int64_t texts);

// One request: its answers drawn apart from each other, or its beams.
class Request {
 public:
  Request(Task task, const Spec& spec, const GenerationRules& rules, const Tokenizer* tokenizer,
          PagePool& pool);
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  uint64_t number() const { return task_.number; }
  const std::vector<int32_t>& source() const { return task_.prompt; }  // of an encoder
  std::vector<Branch>& branches() { return branches_; }
  bool done() const { return done_; }
  int64_t most_branches() const { return std::max(task_.options.answers, task_.options.beams); }
  bool beams() const { return beams_.has_value(); }
  int64_t horizon() const { return horizon_; }
  struct Counts {  // of tokens, all answers together
    int64_t written = 0, guessed = 0, accepted = 0;
  };
  const Counts& counts() const { return counts_; }

  // What of take() needs no other branch: safe for several requests at a time.
  void weigh(size_t branch, const float* logits);
  // The logits [V] behind the last token of a branch, and before it behind those that its guesses
  // stand behind: rows [1 + guesses, V]. `watched` has an entry for each row, or none.
  void take(size_t branch, const float* logits, std::vector<Watched> watched = {});
  // How many tokens may be guessed behind a branch now: none while it has others to read.
  int64_t most_guesses(const Branch& branch) const;
  // Draws from another model's logits what this one may draw behind the branch: by the same rules,
  // with the same random numbers. For as long as the branch does not go on.
  Drafter::Draw guessing(const Branch& branch);
  void guess(Branch& branch, const std::vector<int32_t>& ids) const;  // in place of earlier ones
  const Watch& watch() const { return task_.watch; }
  void count_cached(int64_t tokens) { cached_ = tokens; }
  void release_pages();                    // what was read must be read again
  void fail(const std::exception& error);  // ends it

 private:
  void draw(Branch& branch, const float* logits);
  // Restrains the logits, and draws from them.
  int32_t choose(std::vector<float>& logits, const std::vector<int32_t>& written,
                 TokenCounts& counts, Sampler& sampler) const;
  bool draw_one(Branch& branch, const float* logits, const int32_t* guess, const Watched* watched,
                int32_t& id);
  void advance_beams();
  void finish_beams();
  void put(Branch& branch, int32_t id);
  void end(Branch& branch);
  bool emit(const Event& event);
  void complete(Answer& answer, Event last);
  double seconds() const;

  Task task_;
  const GenerationRules& rules_;
  PagePool& pool_;
  int64_t context_, vocabulary_;
  int64_t horizon_ = 0;
  std::vector<int32_t> counted_;  // what penalties count besides the written
  std::vector<Branch> branches_;
  std::vector<Answer> answers_;
  std::vector<Sampler> samplers_;          // of each answer
  std::vector<TokenCounts> token_counts_;  // of each answer
  std::optional<BeamSearch> beams_;
  // How each beam may go on, until all know.
  std::vector<std::vector<BeamSearch::Continuation>> found_;
  std::vector<Watched> watched_;  // of the rows that are drawn from now
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double prompt_seconds_ = 0;
  int64_t cached_ = 0;
  Counts counts_;
  bool first_ = true, done_ = false;
};

}  // namespace fovea
