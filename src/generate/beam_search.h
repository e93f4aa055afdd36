#pragma once

#include <vector>

#include "generate/rules.h"

namespace fovea {

// Beam search (Graves 2012; Sutskever et al. 2014) as transformers does it: the best `beams`
// unfinished hypotheses go on, and whole ones compete by log-probability / length ^ penalty.
class BeamSearch {
 public:
  BeamSearch(const GenerationRules& rules, const GenerateOptions& options,
             const std::vector<int32_t>& prompt);

  struct Hypothesis {
    std::vector<int32_t> ids = {};  // written; the end included where there is one
    float score = 0;                // sum of log-probabilities; of whole ones / length ^ penalty
    bool ended = false;             // by an end token, not by the limit of its length
    std::vector<float> logprobs = {};
    TokenCounts counts;
  };

  struct Continuation {
    double score;  // of the hypothesis with this token
    int64_t source;
    int32_t id;
    float logprob;
  };
  // The best tokens behind a hypothesis, by its logits [V]: as many as may come into question.
  std::vector<Continuation> best_behind(size_t source, const float* logits,
                                        int64_t vocabulary) const;
  // best_behind() each of hypotheses(). Afterwards sources()[i] is the hypothesis that the i-th of
  // the new ones goes on from, its last id the new one.
  void advance(const std::vector<std::vector<Continuation>>& found);

  bool done() const { return done_; }
  const std::vector<Hypothesis>& hypotheses() const { return running_; }
  const std::vector<int64_t>& sources() const { return sources_; }
  // Whole ones, best first: as many as there are beams.
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
  int64_t length_ = 0;  // tokens written so far
  bool done_ = false;
};

}  // namespace fovea
