#include "options/generation_options.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <random>

#include "options/open_model.h"

namespace fovea::cli {
namespace {

constexpr int64_t kMost = 1'000'000'000;
constexpr int64_t kMostGuesses = 64;  // more is never useful

// Parses "1234:-2.5" or "1234=-inf".
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
    throw UsageError(fmt::format(
        "--logit-bias: \"{}\" is not a bias; expected TOKEN_ID:BIAS, such as 50256:-5", typed));
  }
  return {id, bias};
}

}  // namespace

void GenerationOptions::declare(OptionTable& table) {
  declare_length(table);
  declare_filters(table);
  declare_penalties(table);
  declare_speculation(table);
}

void GenerationOptions::declare_length(OptionTable& table) {
  table.section("Length");
  table.add(integer("--predict", {"-n", "--n-predict", "--max-tokens", "--max-new-tokens"},
                    "maximum tokens to generate; -1 = until the model or --stop ends the text",
                    options.max_tokens, -1, kMost));
  table.add(list("--stop", {}, "end generation before this text; may be repeated", options.stop));
  table.add(integers("--stop-ids", {"--stop-token-ids"}, "end generation at these token ids",
                     stop_ids_, 0, std::numeric_limits<int32_t>::max()));
  table.add(flag("--ignore-eos", {}, "continue past the end-of-text token", options.ignore_end));
  table.add(integer("--min-tokens", {"--min-new-tokens"}, "do not end before N tokens",
                    options.min_tokens, 0, kMost));
}

void GenerationOptions::declare_speculation(OptionTable& table) {
  table.section("Speculative decoding");
  table.add(as("DIR", text("--draft", {"--model-draft", "--assistant-model"},
                           "smaller model with the same vocabulary that proposes speculative "
                           "tokens; the result stays the same",
                           draft_)));
  table.add(integer("--draft-tokens", {"--draft-max", "--num-assistant-tokens"},
                    "--draft: speculative tokens per pass", draft_tokens_, 1, kMostGuesses));
  table.add(
      integer("--guess", {"--speculate", "--prompt-lookup"},
              "speculative tokens per pass, taken from the continuation of an earlier occurrence "
              "of the same words; faster for repetitive text, with the same result; 0 = off",
              guesses_, 0, kMostGuesses));
}

void GenerationOptions::declare_filters(OptionTable& table) {
  Sampling& s = options.sampling;
  table.section("Sampling");
  table.add(number("--temperature", {"--temp"},
                   "sampling temperature; higher is more random; 0 = always the most likely token",
                   s.temperature, 0, 100));
  table.add(
      integer("--top-k", {}, "sample from the N most likely tokens; 0 = all", s.top_k, 0, kMost));
  table.add(number("--top-p", {},
                   "sample from the most likely tokens with this total probability; 1 = all",
                   s.top_p, 1e-6, 1));
  table.add(number("--min-p", {},
                   "drop tokens below this fraction of the highest probability; 0 = off", s.min_p,
                   0, 1));
  table.add(
      number("--typical-p", {"--typical"},
             "sample from the tokens of typical surprise with this total probability; 1 = all",
             s.typical_p, 1e-6, 1));
  table.add(flag("--greedy", {}, "same as --temperature 0", greedy_));
  table.add(integer("--seed", {"-s"},
                    "random seed; the same seed gives the same text; -1 = a random one", seed_, -1,
                    std::numeric_limits<int64_t>::max()));
}

void GenerationOptions::declare_penalties(OptionTable& table) {
  Sampling& s = options.sampling;
  table.section("Penalties");
  table.add(number("--repetition-penalty", {"--repeat-penalty"},
                   "above 1: make earlier tokens less likely", s.repetition_penalty, 0.01, 100));
  table.add(number("--presence-penalty", {}, "subtracted from the logits of generated tokens",
                   s.presence_penalty, -100, 100));
  table.add(number("--frequency-penalty", {},
                   "subtracted from the logits of generated tokens, once per occurrence",
                   s.frequency_penalty, -100, 100));
  table.add(integer("--no-repeat-ngram", {"--no-repeat-ngram-size"},
                    "never repeat a sequence of N tokens; 0 = off", s.no_repeat_ngram, 0, kMost));
  table.add(list("--logit-bias", {},
                 "TOKEN_ID:BIAS, added to the logit of a token; may be repeated", biases_));
}

void GenerationOptions::settle(const Model& model, WeightPrecision precision, OptionTable& table) {
  options = generation_defaults(model);
  biases_.clear();
  table.apply();
  for (const std::string& stop : options.stop) {
    if (stop.empty()) throw UsageError("--stop: \"\" is empty; expected a text");
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
    if (table.given("--draft-tokens")) throw UsageError("--draft-tokens: requires --draft");
    return;
  }
  if (guesses_ > 0) throw UsageError("--draft: cannot be combined with --guess");
  if (options.beams > 1)
    throw UsageError("--draft: cannot be combined with beam search; expected --beams 1");
  draft = open_model(draft_, precision);
  options.guesses = draft_tokens_;
}

std::string guesses_line(int64_t guessed, int64_t accepted) {
  if (guessed == 0) return {};
  return fmt::format("; speculative tokens: {} of {} accepted ({}%)", accepted, guessed,
                     100 * accepted / guessed);
}

}  // namespace fovea::cli
