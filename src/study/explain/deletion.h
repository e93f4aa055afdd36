#pragma once

// Deletion tests: how far the output moves if the tokens with the greatest scores are removed, and
// if as many random tokens are (the comprehensiveness of DeYoung et al. 2020, 4.2, beside that of a
// random choice).

#include <optional>
#include <vector>

#include "explain/output.h"
#include "fovea/study/explain.h"

namespace fovea::study {

// The tests of one text, whose random choices are the same for all methods.
class DeletionTests {
 public:
  // `value`: the output's value for the whole text.
  DeletionTests(const ExplainedOutput& output, const ExplainedText& text, double value,
                const ExplainOptions& options);

  // Returns the result for the scores of all tokens; unset if fewer than two tokens may be removed.
  std::optional<DeletionTest> of(const std::vector<double>& scores) const;

 private:
  double change_without(const std::vector<int64_t>& removed) const;

  const ExplainedOutput& output_;
  const ExplainedText& text_;
  double value_;
  std::vector<int64_t> removable_;
  size_t count_ = 0;  // number of tokens to remove; 0 = no test
  double random_change_ = 0, random_deviation_ = 0;
};

}  // namespace fovea::study
