#include "options/generation_options.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <random>

#include "options/open_model.h"

namespace fovea::cli {
namespace {

constexpr int64_t kMost = 1'000'000'000;
constexpr int64_t kMostGuesses = 64;  // far beyond what pays

// "1234:-2.5" or "1234=-inf"
std::pair<int32_t, float> bias_of(const std::string& typed) {
  const size_t colon = typed.find_first_of(":=");
  int32_t id = 0;
  float bias = 0;
  const char* const end = typed.data() + typed.size();
  const bool known =
      colon != std::string::npos &&
      std::from_chars(typed.data(), typed.data() + colon, id).ptr == typed.data() + colon &&
      std::from_chars(typed.data() + colon + 1, end, bias).ptr == end && bias == bias;
  if (!known) {
    throw UsageError(
        fmt::format("--logit-bias: \"{}\"; expected TOKEN_ID:BIAS, such as 50256:-5", typed));
  }
  return {id, bias};
}

}  // namespace

void GenerationOptions::declare(OptionTable& table) {
  table.add(integer("--predict", {"-n", "--n-predict", "--max-tokens", "--max-new-tokens"},
                    "tokens to write; -1 = until the model or --stop ends it", options.max_tokens,
                    -1, kMost));
  declare_filters(table);
  declare_penalties(table);
  table.add(list("--stop", {}, "end before this text; may be given several times", options.stop));
  table.add(integers("--stop-ids", {"--stop-token-ids"}, "end at these token ids", stop_ids_, 0,
                     std::numeric_limits<int32_t>::max()));
  table.add(flag("--ignore-eos", {}, "go on past the end-of-text token", options.ignore_end));
  table.add(integer("--min-tokens", {"--min-new-tokens"}, "no end before these", options.min_tokens,
                    0, kMost));
  table.add(integer("--guess", {"--speculate", "--prompt-lookup"},
                    "guess so many tokens ahead from what followed the same words before: faster "
                    "where a text repeats itself, the same text; 0 = none",
                    guesses_, 0, kMostGuesses));
  table.add(text("--draft", {"--model-draft", "--assistant-model"},
                 "a smaller model with the same vocabulary that guesses ahead: faster where it "
                 "guesses well, the same text",
                 draft_));
  table.add(integer("--draft-tokens", {"--draft-max", "--num-assistant-tokens"},
                    "--draft: so many tokens ahead", draft_tokens_, 1, kMostGuesses));
}

void GenerationOptions::declare_filters(OptionTable& table) {
  Sampling& s = options.sampling;
  table.add(number("--temperature", {"--temp"}, "higher is bolder; 0 = always the likeliest token",
                   s.temperature, 0, 100));
  table.add(
      integer("--top-k", {}, "choose among the k likeliest tokens; 0 = all", s.top_k, 0, kMost));
  table.add(number("--top-p", {},
                   "choose among the likeliest tokens with this much probability; 1 = all", s.top_p,
                   1e-6, 1));
  table.add(number("--min-p", {},
                   "none below this share of the likeliest token's probability; 0 = all", s.min_p,
                   0, 1));
  table.add(
      number("--typical-p", {"--typical"},
             "choose among the tokens of typical surprise with this much probability; 1 = all",
             s.typical_p, 1e-6, 1));
  table.add(flag("--greedy", {}, "the same as --temperature 0", greedy_));
  table.add(integer("--seed", {"-s"}, "the same seed writes the same text; -1 = random", seed_, -1,
                    std::numeric_limits<int64_t>::max()));
}

void GenerationOptions::declare_penalties(OptionTable& table) {
  Sampling& s = options.sampling;
  table.add(number("--repetition-penalty", {"--repeat-penalty"},
                   "above 1: seen tokens get less likely", s.repetition_penalty, 0.01, 100));
  table.add(number("--presence-penalty", {}, "taken off the logits of tokens written before",
                   s.presence_penalty, -100, 100));
  table.add(number("--frequency-penalty", {},
                   "taken off the logits of tokens for each time they were written",
                   s.frequency_penalty, -100, 100));
  table.add(integer("--no-repeat-ngram", {"--no-repeat-ngram-size"},
                    "no so many tokens in a row twice; 0 = off", s.no_repeat_ngram, 0, kMost));
  table.add(list("--logit-bias", {}, "TOKEN_ID:BIAS, added to that token's logit; several times",
                 biases_));
}

void GenerationOptions::settle(const Model& model, WeightPrecision precision, OptionTable& table) {
  options = generation_defaults(model);
  biases_.clear();
  table.apply();
  for (const std::string& stop : options.stop) {
    if (stop.empty()) throw UsageError("--stop: \"\" is empty; expected the text to end before");
  }
  for (const std::string& bias : biases_) options.sampling.logit_bias.push_back(bias_of(bias));
  options.stop_ids.assign(stop_ids_.begin(), stop_ids_.end());
  if (greedy_) options.sampling.temperature = 0;
  options.guesses = guesses_;
  take_draft(precision, table);
  options.sampling.seed = seed_ < 0 ? std::random_device{}() : static_cast<uint64_t>(seed_);
}

void GenerationOptions::take_draft(WeightPrecision precision, const OptionTable& table) {
  if (draft_.empty()) {
    if (table.given("--draft-tokens")) throw UsageError("--draft-tokens: expected --draft too");
    return;
  }
  if (guesses_ > 0) throw UsageError("--draft, --guess: expected one of them");
  if (options.beams > 1) throw UsageError("--draft: beside a beam search; expected --beams 1");
  draft = open_model(draft_, precision);
  options.guesses = draft_tokens_;
}

std::string guesses_line(int64_t guessed, int64_t accepted) {
  if (guessed == 0) return {};
  return fmt::format("; guesses: {} of {} right ({}%)", accepted, guessed,
                     100 * accepted / guessed);
}

}  // namespace fovea::cli
