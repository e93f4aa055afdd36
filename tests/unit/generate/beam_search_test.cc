#include "generate/beam_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"

namespace fovea::infer {
namespace {

// Returns the lengths of the two best hypotheses, best first, for a model that ends with
// probability `end` after every token.
std::vector<size_t> lengths(float end, float penalty, EarlyStopping early_stopping) {
  const GenerationRules rules{.ends = {0}};
  GenerateOptions options;
  options.beams = 2;
  options.max_tokens = 10;
  options.length_penalty = penalty;
  options.early_stopping = early_stopping;
  const std::vector<int32_t> prompt;
  BeamSearch search(rules, options, prompt);
  const float logits[] = {std::log(end), std::log(1 - end)};
  while (!search.done()) {
    std::vector<std::vector<BeamSearch::Continuation>> found;
    for (size_t i = 0; i < search.hypotheses().size(); ++i)
      found.push_back(search.best_after(i, logits, 2));
    search.advance(found);
  }
  std::vector<size_t> all;
  for (const BeamSearch::Hypothesis& best : search.best()) all.push_back(best.ids.size());
  return all;
}

using Lengths = std::vector<size_t>;

TEST(BeamSearch, EndsByEarlyStopping) {
  // Longer hypotheses score higher, so unfinished hypotheses are better than finished ones.
  EXPECT_EQ(lengths(0.2f, 1, EarlyStopping::yes), Lengths({2, 1}));
  EXPECT_EQ(lengths(0.2f, 1, EarlyStopping::no), Lengths({10, 10}));
  EXPECT_EQ(lengths(0.2f, 1, EarlyStopping::never), Lengths({10, 10}));
  // The score of the unfinished hypothesis is lower now, but it would be among the best at full
  // length.
  EXPECT_EQ(lengths(0.95f, 2, EarlyStopping::no), Lengths({1, 2}));
  EXPECT_EQ(lengths(0.95f, 2, EarlyStopping::never), Lengths({1, 10}));
  // Without a length penalty, the score of a hypothesis only decreases.
  EXPECT_EQ(lengths(0.95f, 0, EarlyStopping::never), Lengths({1, 2}));
}

TEST(BeamSearch, FailsIfLogitsAreNotFinite) {
  const GenerationRules rules;
  GenerateOptions options;
  options.beams = 2;
  const std::vector<int32_t> prompt;
  const BeamSearch search(rules, options, prompt);
  const float logits[] = {0, std::nanf("")};
  expect_error(ErrorKind::Failed, {"logits are not finite"},
               [&] { search.best_after(0, logits, 2); });
}

}  // namespace
}  // namespace fovea::infer
