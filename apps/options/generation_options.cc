#include "options/generation_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <random>

#include "base/nearest.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "options/refusals.h"

namespace fovea::cli {
namespace {

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

// Returns whether a conversation may change this option between two answers.
bool is_changeable(const Option& option) {
  const bool section = option.section == "Length" || option.section == "Sampling" ||
                       option.section == "Penalties" || option.name == "--speculative-tokens";
  return section && option.name != "--logit-bias";  // read by settle() only
}

// Refuses options that have no effect with the others.
void refuse_unused(const OptionTable& table, const infer::GenerateOptions& options, bool greedy) {
  const infer::Sampling& s = options.sampling;
  const bool beams = options.beams > 1, samples = !beams && s.temperature > 0;
  const std::string sampling = beams ? "--beams 1" : "--temperature above 0";
  require(table, !beams || s.temperature == 0, {"--temperature"}, "--beams 1");
  require(table, !greedy, {"--temperature"}, "no --greedy");
  require(table, samples,
          {"--top-k", "--top-p", "--min-p", "--typical-p", "--top-n-sigma", "--xtc-probability",
           "--xtc-threshold", "--samplers", "--mirostat", "--mirostat-tau", "--mirostat-eta"},
          sampling);
  require(table, s.mirostat == 0,
          {"--top-k", "--top-p", "--min-p", "--typical-p", "--top-n-sigma", "--xtc-probability",
           "--samplers"},
          "--mirostat 0");
  static const std::pair<const char*, const char*> kFilters[] = {{"--temperature", "temperature"},
                                                                 {"--top-k", "top_k"},
                                                                 {"--top-n-sigma", "top_n_sigma"},
                                                                 {"--top-p", "top_p"},
                                                                 {"--min-p", "min_p"},
                                                                 {"--typical-p", "typ"},
                                                                 {"--xtc-probability", "xtc"}};
  std::string order = s.samplers;
  std::replace(order.begin(), order.end(), '-', '_');
  for (const auto& [option, filter] : kFilters)
    require(table, order.empty() || order.find(filter) != order.npos, {option},
            "its filter in --samplers");
  require(table, s.mirostat > 0, {"--mirostat-tau", "--mirostat-eta"}, "--mirostat 2");
  require(table, s.xtc_probability > 0, {"--xtc-threshold"}, "--xtc-probability above 0");
  require(table, s.dry_multiplier > 0,
          {"--dry-base", "--dry-allowed-length", "--dry-penalty-last-n", "--dry-sequence-breaker"},
          "--dry-multiplier above 0");
  require(table, beams, {"--length-penalty"}, "--beams above 1");
  require(table, !beams, {"--speculative-tokens"}, "--beams 1");
  require(table, options.beam_groups > 1, {"--diversity-penalty"}, "--beam-groups above 1");
}

}  // namespace

void GenerationOptions::declare(OptionTable& table, const std::vector<std::string>& omitted) {
  Spellings spellings = {
      {.field = "max_tokens",
       .aliases = {"-n", "--n-predict", "--max-tokens", "--max-new-tokens"},
       .name = "--predict",
       .section = "Length"},
      {"stop_ids", {"--stop-token-ids"}},
      {"banned", {"--bad-words"}, "--ban"},
      {"required", {"--force-words"}, "--must"},
      {"beam_groups", {"--num-beam-groups"}},
      {"ignore_end", {}, "--ignore-eos"},
      {"min_tokens", {"--min-new-tokens"}},
      {.field = "temperature", .aliases = {"--temp"}, .section = "Sampling"},
      {"typical_p", {"--typical"}},
      {"top_n_sigma", {"--top-nsigma"}},
      {"samplers", {}, {}, "NAMES"},
      {"mirostat_tau", {"--mirostat-ent"}},
      {"mirostat_eta", {"--mirostat-lr"}},
      {.field = "seed", .omitted = true},  // declared below, since its range includes -1
      {.field = "repetition_penalty", .aliases = {"--repeat-penalty"}, .section = "Penalties"},
      {"no_repeat_ngram", {"--no-repeat-ngram-size"}},
      {"dry_sequence_breakers", {}, "--dry-sequence-breaker"},
      {.field = "speculative_tokens",
       .aliases = {"--speculate", "--prompt-lookup"},
       .section = "Speculative decoding",
       .values = {"-1|auto"}},
      {.field = "generations", .aliases = {"--num-return-sequences"}, .section = "Results"},
      {"beams", {"--num-beams", "-b"}}};
  for (const std::string& field : omitted) spellings.push_back({.field = field, .omitted = true});
  add_fields(table, options, spellings);
  table.section("Sampling");
  table.add(flag("--greedy", {}, "same as --temperature 0", greedy_));
  table.add(integer("--seed", {"-s"},
                    "random seed; the same seed gives the same text; -1 = a random one", seed_, -1,
                    std::numeric_limits<int64_t>::max()));
  table.section("Penalties");
  table.add(list("--logit-bias", {},
                 "TOKEN_ID:BIAS, added to the logit of a token; may be repeated", biases_));
  grammar.declare(table);
  declare_draft(table);
}

void GenerationOptions::declare_draft(OptionTable& table) {
  constexpr int64_t kMostSpeculative = 64;  // more are rarely accepted
  table.section("Speculative decoding");
  table.add(
      of_model(as("DIR", text("--draft", {"--model-draft", "--assistant-model"},
                              "smaller model with the same vocabulary that proposes speculative "
                              "tokens; the result stays the same",
                              draft_))));
  table.add(with_words({"-1|auto"},
                       integer("--draft-tokens", {"--draft-max", "--num-assistant-tokens"},
                               "--draft: speculative tokens per pass; -1 = auto: as many as pay by "
                               "the acceptance so far; 0 = off",
                               draft_tokens_, -1, kMostSpeculative)));
}

void GenerationOptions::settle(const model::Model& model, model::WeightPrecision precision,
                               OptionTable& table) {
  options = infer::generation_defaults(model);
  biases_.clear();
  table.apply();
  for (const std::string& stop : options.stop) {
    if (stop.empty()) throw UsageError("--stop: \"\" is empty; expected a text");
  }
  for (const std::string& bias : biases_) options.sampling.logit_bias.push_back(bias_of(bias));
  take_draft(precision, table);
  take_sampling();
  refuse_unused(table, options, greedy_);
}

void GenerationOptions::take_sampling() {
  if (greedy_) options.sampling.temperature = 0;
  options.sampling.seed = seed_ < 0 ? std::random_device{}() : static_cast<uint64_t>(seed_);
}

void GenerationOptions::change(OptionTable& table, const std::string& name,
                               const std::string& value) {
  const Option* const option = table.find(option_name(name));
  if (option == nullptr || !is_changeable(*option)) {
    std::vector<std::string> names;
    for (const Option& each : table.all())
      if (is_changeable(each)) names.push_back(each.name.substr(2));
    throw UsageError(fmt::format("{}: unknown setting{}", name, did_you_mean(name, names)));
  }
  greedy_ = false;
  option->set(value.empty() && option->kind == Kind::flag ? "true" : value);
  if (greedy_) options.sampling.temperature = 0;
  if (option->name == "--seed") take_sampling();
}

std::string GenerationOptions::changeable(const OptionTable& table) {
  std::string lines;
  for (const Option& option : table.all())
    if (is_changeable(option) && option.name != "--greedy")
      lines += fmt::format("  {:<20} {}\n", option.name.substr(2), option.get());
  return lines;
}

void GenerationOptions::take_draft(model::WeightPrecision precision, const OptionTable& table) {
  if (draft_.empty()) {
    if (table.given("--draft-tokens")) throw UsageError("--draft-tokens: requires --draft");
    return;
  }
  if (table.given("--speculative-tokens"))
    throw UsageError("--draft: cannot be combined with --speculative-tokens");
  if (options.beams > 1)
    throw UsageError("--draft: cannot be combined with beam search; expected --beams 1");
  draft = open_model(draft_, precision);
  options.speculative_tokens = draft_tokens_;
}

std::string speculation_line(const OptionTable& table, int64_t speculative, int64_t accepted) {
  const bool is_requested = table.given("--speculative-tokens") || table.given("--draft");
  if (speculative == 0 || !is_requested) return {};
  return fmt::format("; speculative tokens: {} of {} accepted ({}%)", accepted, speculative,
                     100 * accepted / speculative);
}

}  // namespace fovea::cli
