#pragma once

#include <map>
#include <vector>

#include "fovea/infer/beam_tree.h"
#include "generate/required_texts.h"
#include "generate/rules.h"

namespace fovea::infer {

// Beam search (Graves 2012; Sutskever et al. 2014) with the rules of the library transformers: the
// best `beams` unfinished hypotheses continue, and finished ones compete by log-probability /
// length ^ penalty. With groups (GenerateOptions::beam_groups), each has its own hypotheses.
class BeamSearch {
 public:
  // The arguments must outlive the BeamSearch. `required` and `source` (see Restraints) may be
  // null.
  BeamSearch(const GenerationRules& rules, const GenerateOptions& options,
             const std::vector<int32_t>& prompt, const RequiredTexts* required = nullptr,
             const std::vector<int32_t>* source = nullptr);

  struct Hypothesis {
    std::vector<int32_t> ids = {};  // generated tokens, including the end token
    float score = 0;     // sum of log-probabilities; divided by length ^ penalty if finished
    bool ended = false;  // ended by an end token, not by the length limit
    std::vector<float> logprobs = {};
    TokenCounts counts;
    size_t group = 0;
    int64_t node = -1;  // of the last token in tree()
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
  std::vector<Hypothesis> best() const;
  // Returns what was considered, if GenerateOptions::beam_tree is set.
  const BeamTree& tree() const { return tree_; }

 private:
  using Continuations = std::vector<Continuation>;
  struct Group {
    std::vector<Hypothesis> finished = {};
    bool done = false;
  };

  static bool better(const Continuation& a, const Continuation& b);
  static float lowest(const Continuations& best, size_t kept, double before);
  size_t kept() const;
  void require(const RequiredTexts::Progress& progress, float* row, int64_t vocabulary) const;
  Hypothesis extended(const Continuation& continuation, size_t group) const;
  // Adds a continuation to the tree, if it is requested, and returns its index.
  int64_t recorded(const Continuation& continuation, BeamFate fate);
  void follow(const Continuation& continuation, size_t group, std::vector<Hypothesis>& next,
              std::vector<int64_t>& sources);
  void finish(const Continuation& continuation, bool ended, size_t group);
  bool full(const Group& group) const { return std::ssize(group.finished) >= size_; }
  bool can_improve(const Group& group, const Hypothesis& best) const;
  Continuations of_group(const std::vector<Continuations>& found, size_t group,
                         const std::map<int32_t, int64_t>& taken) const;
  void select(Continuations all, size_t group, std::vector<Hypothesis>& next,
              std::vector<int64_t>& sources, std::map<int32_t, int64_t>& taken);
  void select_required(const Continuations& all, std::vector<Hypothesis>& next,
                       std::vector<int64_t>& sources);

  const GenerationRules& rules_;
  const GenerateOptions& options_;
  const std::vector<int32_t>& prompt_;
  const std::vector<int32_t>* source_;
  const RequiredTexts* required_;
  int64_t size_;  // beams of a group
  std::vector<Group> groups_;
  std::vector<Hypothesis> running_;  // of all groups, one after the other
  std::vector<int64_t> sources_;
  BeamTree tree_;
  int64_t length_ = 0;  // tokens generated so far
  bool done_ = false;
};

}  // namespace fovea::infer
