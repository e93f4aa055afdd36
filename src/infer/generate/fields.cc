#include <limits>

#include "cache/page_pool.h"
#include "fovea/infer/engine.h"
#include "fovea/infer/translate.h"

namespace fovea::infer {
namespace {

// Longer than any context.
constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostBeams = 1024;
constexpr double kMostLengthPenalty = 100;

void visit_length(GenerateOptions& o, OptionVisitor& v) {
  v.integer({"max_tokens", "maximum tokens to generate; -1 = unlimited"}, o.max_tokens, -1,
            kMostTokens);
  v.texts({"stop", "end generation before any of these texts"}, o.stop);
  v.integers({"stop_ids", "end generation at any of these token ids"}, o.stop_ids, 0, kMostTokens);
  v.texts({"banned", "never generate this text"}, o.banned);
  v.boolean({"ignore_end", "continue past the end-of-text token"}, o.ignore_end);
  v.integer({"min_tokens", "do not end before N tokens"}, o.min_tokens, 0, kMostTokens);
}

void visit_sampling(Sampling& s, OptionVisitor& v) {
  v.number({"temperature",
            "sampling temperature; higher is more random; 0 = always the most "
            "likely token"},
           s.temperature, 0, 100);
  v.integer({"top_k", "sample from the N most likely tokens; 0 = all"}, s.top_k, 0, kMostTokens);
  v.number({"top_p", "sample from the most likely tokens with this total probability; 1 = all"},
           s.top_p, 1e-6, 1);
  v.number({"min_p", "drop tokens below this fraction of the highest probability; 0 = off"},
           s.min_p, 0, 1);
  v.number({"typical_p",
            "sample from the tokens whose surprisal is nearest to the entropy, up to this total "
            "probability; "
            "1 = all"},
           s.typical_p, 1e-6, 1);
  v.number({"top_n_sigma",
            "drop tokens whose logit is more than X standard deviations of all logits below the "
            "highest; 0 = off"},
           s.top_n_sigma, 0, 100);
  v.number({"xtc_probability",
            "probability, at each token, that XTC drops all but the least likely of the tokens "
            "above its threshold; 0 = off"},
           s.xtc_probability, 0, 1);
  v.number({"xtc_threshold", "XTC: probability above which a token is a top choice"},
           s.xtc_threshold, 0, 1);
  v.text(
      {"samplers",
       "the filters in their order, separated by \";\"; others are off; unset: "
       "top_k;top_n_sigma;temperature;top_p;typical_p;min_p;xtc; penalties and dry, if named, are "
       "applied in this order too, else first"},
      s.samplers);
  v.integer({"mirostat",
             "2 = Mirostat 2.0 instead of the filters, which keeps the surprisal of the text "
             "constant; 0 = off"},
            s.mirostat, 0, 2);
  v.number({"mirostat_tau", "Mirostat: target of the surprisal, in bits per token"}, s.mirostat_tau,
           0, 100);
  v.number({"mirostat_eta", "Mirostat: how fast it corrects deviations from its target"},
           s.mirostat_eta, 0, 1);
  v.seed({"seed", "random seed; the same seed gives the same text"}, s.seed);
}

void visit_penalties(Sampling& s, OptionVisitor& v) {
  v.number({"repetition_penalty", "above 1: make earlier tokens less likely"}, s.repetition_penalty,
           0.01, 100);
  v.number({"presence_penalty", "subtracted from the logits of generated tokens"},
           s.presence_penalty, -100, 100);
  v.number(
      {"frequency_penalty", "subtracted from the logits of generated tokens, once per occurrence"},
      s.frequency_penalty, -100, 100);
  v.integer({"no_repeat_ngram", "never repeat a sequence of N tokens; 0 = off"}, s.no_repeat_ngram,
            0, kMostTokens);
  v.number({"dry_multiplier",
            "DRY: penalty of a token that would continue a repetition of allowed length; 0 = off"},
           s.dry_multiplier, 0, 100);
  v.number({"dry_base", "DRY: factor of the penalty for each further repeated token"}, s.dry_base,
           1, 100);
  v.integer({"dry_allowed_length", "DRY: repetitions of fewer tokens have no penalty"},
            s.dry_allowed_length, 1, kMostTokens);
  v.integer({"dry_penalty_last_n", "DRY: search only the last N tokens; 0 = off, -1 = all"},
            s.dry_penalty_last_n, -1, kMostTokens);
  v.texts({"dry_sequence_breakers",
           "DRY: text that ends a repetition; none = no text; unset: a line break, \":\", "
           "'\"' and \"*\""},
          s.dry_sequence_breakers);
}

}  // namespace

void visit(GenerateOptions& o, OptionVisitor& v) {
  visit_length(o, v);
  visit_sampling(o.sampling, v);
  visit_penalties(o.sampling, v);
  v.integer({"speculative_tokens",
             "speculative tokens per pass, taken from the continuation of an earlier occurrence of "
             "the same words; faster for repetitive text, with the same result; -1 = auto: as many "
             "as pay by the acceptance so far; 0 = off"},
            o.speculative_tokens, -1, model::kMostRejected);  // more is never useful
  v.integer(
      {"generations", "number of independent samples, or of the best hypotheses of a beam search"},
      o.generations, 1, kMostBeams);
  v.integer({"beams", "hypotheses of a beam search; 1 = sampling"}, o.beams, 1, kMostBeams);
  v.number({"length_penalty", "beams: hypotheses are ranked by log-probability / length ^ X"},
           o.length_penalty, -kMostLengthPenalty, kMostLengthPenalty);
  v.integer({"beam_groups", "diverse beam search: groups of beams that avoid each other's tokens"},
            o.beam_groups, 1, kMostBeams);
  v.number({"diversity_penalty",
            "beam groups: subtracted from the log-probability of a token for each time that an "
            "earlier group has it at the same step"},
           o.diversity_penalty, 0, 1000);
  v.texts({"required", "beams: a text that every generation contains"}, o.required);
  v.integer({"logprobs",
             "return the log-probability of each token and of its N most likely alternatives; -1 = "
             "none"},
            o.logprobs, -1, 1 << 24);
}

void visit(EngineOptions& o, OptionVisitor& v) {
  v.bytes({"cache_bytes", "memory of the key-value cache; 0 = a quarter of the free memory"},
          o.cache_bytes);
  v.integer({"most_sequences", "maximum number of sequences generated at the same time"},
            o.most_sequences, 1, 4096);
  v.integer({"most_waiting", "maximum number of waiting requests; further ones are refused"},
            o.most_waiting, 1, 100'000);
  v.integer({"step_tokens", "maximum tokens per step; longer prompts are read in chunks"},
            o.step_tokens, 1, 65536);
}

void visit(TranslateOptions& o, OptionVisitor& v) {
  constexpr int64_t kMostTarget = 1 << 20;
  v.integer({"beams", "hypotheses of the beam search; 1 = greedy"}, o.beams, 1, kMostBeams);
  const Field penalty = {"length_penalty", "hypotheses are ranked by log-probability / length ^ X"};
  v.optional(penalty, o.length_penalty, [&](float& value) {
    v.number(penalty, value, -kMostLengthPenalty, kMostLengthPenalty);
  });
  v.integer({"best", "number of hypotheses per line, with scores"}, o.best, 1, kMostBeams);
  v.boolean({"alignment", "also return word alignments between source and translation"},
            o.alignment);
  v.boolean({"tree", "also return the tree of the beam search"}, o.tree);
  v.text({"prefix", "first words of every translation"}, o.prefix);
  v.text({"terms",
          "file of lines source term<TAB>target term: translations of lines with the source term "
          "contain the target term"},
         o.terms);
  v.boolean({"markup", "keep tags, URLs and placeholders in place"}, o.markup);
  v.text({"source_prefix", "text prepended to every source line"}, o.source_prefix);
  v.text({"task",
          "instead of a source prefix: a task in config.json, such as "
          "translation_en_to_de, whose prefix is prepended"},
         o.task);
  v.text({"source_language", "language of the sources: a code of the model or a tag such as pt-BR"},
         o.source_language);
  v.text({"target_language", "language of the translations"}, o.target_language);
  v.number({"length_factor", "at most X target tokens per source token, plus 10"}, o.length_factor,
           0.01, 1000);
  v.integer({"max_tokens", "instead of the factor: at most N tokens; 0 = by the factor"},
            o.max_tokens, 0, kMostTarget);
  v.integer({"min_tokens", "do not end before N tokens"}, o.min_tokens, 0, kMostTarget);
  v.boolean(
      {"refuse_long", "stop at a line longer than the model's context instead of truncating it"},
      o.refuse_long);
  v.integer({"sequences", "maximum number of hypotheses per batch"}, o.sequences, 1, 1 << 16);
}

}  // namespace fovea::infer
