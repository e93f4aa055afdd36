// Rules that change the logits before a token is sampled.

#include "generate/rules.h"

#include <gtest/gtest.h>

#include <cmath>

#include <limits>

#include "fovea/core/random.h"
#include "support/expect_error.h"

namespace fovea::infer {
namespace {

using Floats = std::vector<float>;
using Ids = std::vector<int32_t>;

constexpr float kNever = -std::numeric_limits<float>::infinity();

Floats restrained(Floats logits, const GenerateOptions& options, const Ids& prompt,
                  const Ids& generated, const GenerationRules& rules = {}) {
  TokenCounts counts(options.sampling, prompt);
  counts.follow(generated);
  restrain(logits.data(), std::ssize(logits), {rules, options, prompt, counts}, generated);
  return logits;
}

TEST(Rules, PenaliseEachSeenTokenOnce) {
  GenerateOptions options;
  options.sampling.repetition_penalty = 2;
  EXPECT_EQ(restrained({2, -1, 0, 3}, options, {0, 1, 1}, {0, 2}), (Floats{1, -2, 0, 3}));
  EXPECT_EQ(restrained({2, -1, 0, 3}, options, {}, {}), (Floats{2, -1, 0, 3}));
}

TEST(Rules, SubtractPresenceOnceAndFrequencyPerOccurrence) {
  GenerateOptions options;
  options.sampling.presence_penalty = 1;
  options.sampling.frequency_penalty = 0.5f;
  EXPECT_EQ(restrained({0, 0, 0, 0}, options, {3, 3}, {1, 2, 2}), (Floats{0, -1.5f, -2, 0}));
}

// The token counts of a result are updated token by token. A draft model has a copy, which also
// counts speculative tokens that are rejected later.
TEST(Rules, UpdateCountsLikeARecount) {
  constexpr int32_t kTokens = 12;
  Random random(7, Stream::sampling);
  const auto token = [&] { return static_cast<int32_t>(random.uniform_double() * kTokens); };
  GenerateOptions options;
  options.sampling.repetition_penalty = 1.3f;
  options.sampling.presence_penalty = 0.2f;
  options.sampling.frequency_penalty = 0.1f;
  for (int text = 0; text < 20; ++text) {
    Ids prompt, generated;
    while (std::ssize(prompt) < text) prompt.push_back(token());
    TokenCounts counts(options.sampling, prompt);
    for (int step = 0; step < 30; ++step) {
      Floats logits;
      for (int32_t id = 0; id < kTokens; ++id)
        logits.push_back(static_cast<float>(random.uniform_double()) - 0.5f);
      const auto expect_recounted = [&](TokenCounts& followed, const Ids& ids) {
        followed.follow(ids);
        Floats found = logits;
        restrain(found.data(), kTokens, {{}, options, prompt, followed}, ids);
        EXPECT_EQ(found, restrained(logits, options, prompt, ids));
      };
      TokenCounts draft = counts;
      Ids proposed = generated;
      for (int proposal = 0; proposal < step % 4; ++proposal) {
        proposed.push_back(token());
        expect_recounted(draft, proposed);
      }
      expect_recounted(counts, generated);
      for (int accepted = 0; accepted < 1 + step % 3; ++accepted) generated.push_back(token());
    }
  }
}

TEST(Rules, ForbidRepeatedNgrams) {
  GenerateOptions options;
  options.sampling.no_repeat_ngram = 3;
  // The text ends with "0 1"; earlier, 2 and 3 followed these tokens.
  EXPECT_EQ(restrained({1, 1, 1, 1}, options, {0, 1, 2, 0, 1, 3}, {0, 1}),
            (Floats{1, 1, kNever, kNever}));
  EXPECT_EQ(restrained({1, 1, 1, 1}, options, {0}, {1}), (Floats{1, 1, 1, 1}));
  options.sampling.no_repeat_ngram = 1;
  EXPECT_EQ(restrained({1, 1, 1, 1}, options, {2}, {0}), (Floats{kNever, 1, kNever, 1}));
}

TEST(Rules, ForbidNgramsOfTheSource) {
  GenerationRules rules;
  rules.source_ngram = 2;
  const Ids source = {1, 3, 0, 1, 2}, prompt = {0};
  const auto after = [&](const Ids& generated) {
    Floats logits(4, 1.0f);
    TokenCounts counts({}, prompt);
    counts.follow(generated);
    restrain(logits.data(), 4, {rules, {}, prompt, counts, &source}, generated);
    return logits;
  };
  EXPECT_EQ(after({}), (Floats{1, kNever, 1, 1}));        // 0 1
  EXPECT_EQ(after({1}), (Floats{1, 1, kNever, kNever}));  // 1 3, 1 2
  EXPECT_EQ(after({2}), (Floats{1, 1, 1, 1}));
}

TEST(Rules, AddTheBias) {
  GenerateOptions options;
  options.sampling.logit_bias = {{1, -2.5f}, {3, kNever}};
  EXPECT_EQ(restrained({0, 1, 2, 3}, options, {}, {}), (Floats{0, -1.5f, 2, kNever}));
}

TEST(Rules, DelayTheEndAndForceTokens) {
  GenerationRules rules;
  rules.ends = {0};
  rules.forced_last = 0;
  rules.suppressed = {3, 99};  // 99 is outside the vocabulary
  rules.suppressed_first = {1};
  GenerateOptions options;
  options.max_tokens = 5;
  options.min_tokens = 2;
  EXPECT_EQ(restrained({1, 1, 1, 1}, options, {}, {}, rules), (Floats{kNever, kNever, 1, kNever}));
  EXPECT_EQ(restrained({1, 1, 1, 1}, options, {}, {2}, rules), (Floats{kNever, 1, 1, kNever}));
  EXPECT_EQ(restrained({1, 1, 1, 1}, options, {}, {2, 2}, rules), (Floats{1, 1, 1, kNever}));
  EXPECT_EQ(restrained({1, 1, 1, 1}, options, {}, {2, 2, 2, 2}, rules),
            (Floats{0, kNever, kNever, kNever}));
  options.forced = {3, 2};  // overrides all other rules
  EXPECT_EQ(restrained({1, 1, 1, 1}, options, {}, {3}, rules), (Floats{kNever, kNever, 0, kNever}));
}

TEST(Rules, ApplyAConstraint) {
  GenerateOptions options;
  options.constrain = [](std::span<const int32_t> generated, std::span<float> logits) {
    EXPECT_EQ(logits.size(), 3u);
    logits[generated.size()] = kNever;
  };
  EXPECT_EQ(restrained({0, 0, 0}, options, {2}, {1}), (Floats{0, kNever, 0}));
}

TEST(Rules, ComeFromTheCheckpoint) {
  model::Origin origin;
  origin.generation = {{"decoder_start_token_id", 7},
                       {"forced_bos_token_id", 8},
                       {"suppress_tokens", {1, 2}},
                       {"bad_words_ids", {{5}, {6, 7}}},
                       {"encoder_no_repeat_ngram_size", 3},
                       {"do_sample", true},
                       {"temperature", 0.5},
                       {"top_p", "high"}};  // not a number: ignored
  origin.carried = {{"forced_eos_token_id", 9}, {"num_beams", 4}, {"early_stopping", "never"}};
  const GenerationRules rules = rules_of(origin, {3});
  EXPECT_EQ(rules.start, 7);
  EXPECT_EQ(rules.forced_first, 8);
  EXPECT_EQ(rules.forced_last, 9);
  EXPECT_EQ(rules.source_ngram, 3);
  EXPECT_EQ(rules.suppressed, (Ids{1, 2, 5}));
  EXPECT_EQ(rules.suppressed_words, (std::vector<Ids>{{6, 7}}));
  const GenerateOptions options = defaults_of(origin, {});
  EXPECT_EQ(options.sampling.temperature, 0.5f);
  EXPECT_EQ(options.sampling.top_k, 50);
  EXPECT_EQ(options.sampling.top_p, 1);
  EXPECT_EQ(options.beams, 4);
  EXPECT_EQ(rules.early_stopping, EarlyStopping::never);
  EXPECT_EQ(options.early_stopping, EarlyStopping::never);
}

TEST(Rules, ForbidWordsOfSeveralTokens) {
  GenerationRules rules;
  rules.suppressed_words = {{1, 2}, {3, 0, 2}};
  EXPECT_EQ(restrained({1, 1, 1, 1}, {}, {1}, {}, rules), (Floats{1, 1, kNever, 1}));
  EXPECT_EQ(restrained({1, 1, 1, 1}, {}, {3}, {0}, rules), (Floats{1, 1, kNever, 1}));
  EXPECT_EQ(restrained({1, 1, 1, 1}, {}, {}, {0}, rules), (Floats{1, 1, 1, 1}));
}

TEST(Rules, TextsOfTheCheckpointEndAnAnswer) {
  model::Origin origin;
  origin.generation = {{"stop_strings", {"END", ""}}};
  const GenerationRules rules = rules_of(origin, {});
  GenerateOptions options;
  options.stop = {"x"};
  EXPECT_EQ(stops(rules, options), (std::vector<std::string>{"x", "END"}));
  options.ignore_end = true;
  EXPECT_EQ(stops(rules, options), std::vector<std::string>{"x"});
  origin.generation = {{"stop_strings", "END"}};
  EXPECT_EQ(rules_of(origin, {}).stop, std::vector<std::string>{"END"});
}

// min_length counts the start token of a decoder after an encoder; the prompt of a decoder alone
// would count too.
TEST(Rules, TheLeastLengthOfAnEncoderDecoder) {
  model::Origin origin;
  origin.carried = {{"min_length", 5}};
  model::Spec spec;
  EXPECT_EQ(defaults_of(origin, spec).min_tokens, 0);
  spec.encoder.emplace();
  EXPECT_EQ(defaults_of(origin, spec).min_tokens, 4);
}

TEST(Rules, RefuseOptionsOutOfRange) {
  const auto refused = [](const char* flag, auto&& change) {
    GenerateOptions options;
    change(options);
    expect_error(ErrorKind::InvalidArgument, {flag, "expected"},
                 [&] { check_options(options, 10); });
  };
  refused("max_tokens: -2", [](GenerateOptions& o) { o.max_tokens = -2; });
  refused("generations: 0", [](GenerateOptions& o) { o.generations = 0; });
  refused("generations: 3", [](GenerateOptions& o) { o.generations = 3, o.beams = 2; });
  refused("beams: 0", [](GenerateOptions& o) { o.beams = 0; });
  refused("logprobs: 11", [](GenerateOptions& o) { o.logprobs = 11; });
  for (const float bad : {-0.1f, 101.0f, NAN})
    refused("temperature: ", [&](GenerateOptions& o) { o.sampling.temperature = bad; });
  for (const float bad : {0.0f, 1.1f, NAN})
    refused("top_p: ", [&](GenerateOptions& o) { o.sampling.top_p = bad; });
  for (const float bad : {-1.0f, 0.0f, 101.0f})
    refused("repetition_penalty: ",
            [&](GenerateOptions& o) { o.sampling.repetition_penalty = bad; });
  refused("logit_bias: token id 10", [](GenerateOptions& o) { o.sampling.logit_bias = {{10, 1}}; });
}

}  // namespace
}  // namespace fovea::infer
