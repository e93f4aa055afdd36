#include "generate/beam_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

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

// Runs a search over 7 tokens whose logits depend on the tokens before; 0 ends.
BeamSearch searched(const GenerationRules& rules, const GenerateOptions& options,
                    const std::vector<int32_t>& prompt) {
  BeamSearch search(rules, options, prompt);
  while (!search.done()) {
    std::vector<std::vector<BeamSearch::Continuation>> found;
    for (size_t i = 0; i < search.hypotheses().size(); ++i) {
      float logits[7];
      double state = 1;
      for (const int32_t id : search.hypotheses()[i].ids) state = state * 1.7 + id;
      for (int id = 0; id < 7; ++id)
        logits[id] = static_cast<float>(2 * std::sin(state * (id + 1) + id));
      found.push_back(search.best_after(i, logits, 7));
    }
    search.advance(found);
  }
  return search;
}

TEST(BeamSearch, RecordsItsTree) {
  const GenerationRules rules{.ends = {0}};
  const std::vector<int32_t> prompt;
  GenerateOptions options;
  options.beams = 3;
  options.max_tokens = 9;
  options.length_penalty = 0.8f;
  const BeamSearch plain = searched(rules, options, prompt);
  EXPECT_TRUE(plain.tree().empty());
  options.beam_tree = true;
  const BeamSearch search = searched(rules, options, prompt);
  const BeamTree& tree = search.tree();
  ASSERT_EQ(search.best().size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const BeamSearch::Hypothesis one = search.best()[i];
    EXPECT_EQ(one.ids, plain.best()[i].ids);
    EXPECT_EQ(tree[static_cast<size_t>(one.node)].fate, BeamFate::finished);
    EXPECT_EQ(tree[static_cast<size_t>(one.node)].score, one.score);
    std::vector<int32_t> ids;
    double sum = 0;
    for (int64_t node = one.node; node >= 0; node = tree[static_cast<size_t>(node)].parent) {
      ids.insert(ids.begin(), tree[static_cast<size_t>(node)].id);
      sum += tree[static_cast<size_t>(node)].logprob;
    }
    EXPECT_EQ(ids, one.ids);
    EXPECT_NEAR(sum / std::pow(ids.size(), 0.8), one.score, 1e-5);
  }
  std::map<int64_t, int64_t> beams, all;  // by step
  int64_t finished = 0;
  for (const BeamNode& node : tree) {
    const bool begins = node.parent < 0;
    EXPECT_EQ(node.step, begins ? 0 : tree[static_cast<size_t>(node.parent)].step + 1);
    EXPECT_TRUE(begins || tree[static_cast<size_t>(node.parent)].fate == BeamFate::continued);
    beams[node.step] += node.fate == BeamFate::continued || node.fate == BeamFate::stopped;
    ++all[node.step];
    finished += node.fate == BeamFate::finished;
    if (node.fate == BeamFate::displaced) {
      EXPECT_LE(node.score, search.best().back().score);
    }
  }
  EXPECT_EQ(finished, 3);
  for (const auto& [step, count] : beams) EXPECT_LE(count, 3) << step;
  for (const auto& [step, count] : all) EXPECT_LE(count, 6) << step;
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
