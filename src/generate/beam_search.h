#pragma once

#include <vector>

#include "generate/rules.h"

namespace fovea {

// Beam search (Graves 2012; Sutskever et al. 2014) with the rules of the library transformers: the
// best `beams` unfinished hypotheses continue, and finished ones compete by log-probability /
// length ^ penalty.
class BeamSearch {
 public:
  // The arguments must outlive the BeamSearch.
  BeamSearch(const GenerationRules& rules, const GenerateOptions& options,
             const std::vector<int32_t>& prompt);

  struct Hypothesis {
    std::vector<int32_t> ids = {};  // generated tokens, including the end token
    float score = 0;     // sum of log-probabilities; divided by length ^ penalty if finished
    bool ended = false;  // ended by an end token, not by the length limit
    std::vector<float> logprobs = {};
    TokenCounts counts;
  };

  struct Continuation {
    double score;  // score of the hypothesis with this token
    int64_t source;
    int32_t id;
    float logprob;
  };
  // Returns the best continuations of a hypothesis, given its logits [V]: as many as advance() can
  // need.
  std::vector<Continuation> best_after(size_t source, const float* logits,
                                       int64_t vocabulary) const;
  // Advances by one token, given best_after() of each of hypotheses(). Afterwards hypotheses()[i]
  // continues the earlier hypothesis sources()[i], and its last id is the new token.
  void advance(const std::vector<std::vector<Continuation>>& found);

  bool done() const { return done_; }
  const std::vector<Hypothesis>& hypotheses() const { return running_; }
  const std::vector<int64_t>& sources() const { return sources_; }
  // Returns the finished hypotheses, best first: at most as many as there are beams.
  const std::vector<Hypothesis>& best() const { return finished_; }

 private:
  static bool better(const Continuation& a, const Continuation& b);
  static float lowest(const std::vector<Continuation>& best, size_t kept, double before);
  size_t kept() const;
  Hypothesis extended(const Continuation& continuation) const;
  void finish(const Continuation& continuation, bool ended);
  bool full() const { return std::ssize(finished_) >= options_.beams; }
  bool can_improve() const;

  const GenerationRules& rules_;
  const GenerateOptions& options_;
  const std::vector<int32_t>& prompt_;
  std::vector<Hypothesis> running_, finished_;
  std::vector<int64_t> sources_;
  int64_t length_ = 0;  // tokens generated so far
  bool done_ = false;
};

}  // namespace fovea
