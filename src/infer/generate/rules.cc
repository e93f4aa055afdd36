#include "generate/rules.h"

#include <algorithm>
#include <limits>

#include "base/fields.h"
#include "generate/repetition.h"
#include "generate/sampler.h"

namespace fovea::infer {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

constexpr int64_t kLongestNgram = int64_t{1} << 24;  // a limit above any text

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

const nlohmann::ordered_json* value_under(const model::Origin& origin, const char* key) {
  for (const nlohmann::ordered_json* json : {&origin.generation, &origin.carried}) {
    if (json->is_object() && json->contains(key) && !json->at(key).is_null()) return &json->at(key);
  }
  return nullptr;
}

std::vector<int32_t> integers_in(const nlohmann::ordered_json& list) {
  std::vector<int32_t> ids;
  if (!list.is_array()) return ids;
  for (const auto& id : list)
    if (id.is_number_integer()) ids.push_back(id.get<int32_t>());
  return ids;
}

std::vector<int32_t> ids_of(const model::Origin& origin, const char* key) {
  const nlohmann::ordered_json* value = value_under(origin, key);
  return value == nullptr ? std::vector<int32_t>() : integers_in(*value);
}

std::vector<std::string> texts_of(const model::Origin& origin, const char* key) {
  std::vector<std::string> texts;
  const nlohmann::ordered_json* value = value_under(origin, key);
  if (value == nullptr) return texts;
  for (const auto& text : value->is_array() ? *value : nlohmann::ordered_json::array({*value}))
    if (text.is_string() && !text.get_ref<const std::string&>().empty())
      texts.push_back(text.get<std::string>());
  return texts;
}

void set(float* logits, int64_t vocabulary, int32_t id, float value) {
  if (id >= 0 && id < vocabulary) logits[id] = value;
}

void force(float* logits, int64_t vocabulary, int32_t id) {
  std::fill(logits, logits + vocabulary, kNever);
  set(logits, vocabulary, id, 0);
}

// Forbids the tokens that would complete, after `seen`, an n-gram of `text`.
void forbid_ngrams(float* logits, int64_t vocabulary, const std::vector<int32_t>& seen,
                   const std::vector<int32_t>& text, int64_t n) {
  const int64_t before = n - 1;
  if (std::ssize(seen) < before) return;
  const auto tail = seen.end() - before;
  for (int64_t i = 0; i + n <= std::ssize(text); ++i) {
    const auto begin = text.begin() + i;
    if (std::equal(tail, seen.end(), begin)) set(logits, vocabulary, *(begin + before), kNever);
  }
}

// Forbids the last token of a word after its other tokens.
void forbid_words(float* logits, int64_t vocabulary, const std::vector<int32_t>& seen,
                  const std::vector<std::vector<int32_t>>& words) {
  for (const std::vector<int32_t>& word : words) {
    const auto before = std::ssize(word) - 1;
    if (std::ssize(seen) >= before && std::equal(seen.end() - before, seen.end(), word.begin()))
      set(logits, vocabulary, word.back(), kNever);
  }
}

std::vector<int32_t> seen_by(const Restraints& r, const std::vector<int32_t>& generated) {
  std::vector<int32_t> seen = r.prompt;
  seen.insert(seen.end(), generated.begin(), generated.end());
  return seen;
}

EarlyStopping early_stopping_of(const model::Origin& origin) {
  const auto* const early = value_under(origin, "early_stopping");
  if (early == nullptr) return EarlyStopping::no;
  if (*early == "never") return EarlyStopping::never;
  return *early == true ? EarlyStopping::yes : EarlyStopping::no;
}

// Describes a model that generates no text, and names the command that fits it.
std::string described(const model::Spec& spec) {
  switch (spec.head.kind) {
    case model::HeadKind::language_model:
      return "it is encoder-only and generates no text (use embed for vectors)";
    case model::HeadKind::pooled: return "its head makes vectors of texts (use embed)";
    case model::HeadKind::sequence:
      return spec.head.labels == 1 ? "its head scores texts (use rerank)"
                                   : "its head labels texts (use eval --labels)";
    case model::HeadKind::token: return "its head labels words (use eval --labels)";
    case model::HeadKind::span: return "its head finds spans in texts (use inspect)";
  }
  return "";
}

}  // namespace

const model::Spec& checked_writer(const model::Spec& spec) {
  check(spec.decoder && spec.head.kind == model::HeadKind::language_model,
        "model: {}; expected a decoder with a language-model head", described(spec));
  return spec;  // NOLINT(bugprone-return-const-ref-from-parameter): the caller's
}

GenerationRules rules_of(const model::Origin& origin, const std::vector<int32_t>& end_ids) {
  GenerationRules rules;
  rules.ends = end_ids;
  rules.start = model::special_id(origin, "decoder_start_token_id");
  rules.forced_first = model::special_id(origin, "forced_bos_token_id");
  rules.forced_last = model::special_id(origin, "forced_eos_token_id");
  rules.suppressed = ids_of(origin, "suppress_tokens");
  rules.suppressed_first = ids_of(origin, "begin_suppress_tokens");
  rules.stop = texts_of(origin, "stop_strings");
  if (const auto* const n = value_under(origin, "encoder_no_repeat_ngram_size");
      n && n->is_number_integer() && *n > 0 && *n <= kLongestNgram)
    rules.source_ngram = n->get<int64_t>();
  const auto* const penalty = value_under(origin, "length_penalty");
  if (penalty && penalty->is_number()) rules.length_penalty = penalty->get<float>();
  rules.early_stopping = early_stopping_of(origin);
  if (const auto* words = value_under(origin, "bad_words_ids"); words && words->is_array()) {
    for (const auto& word : *words) {
      const std::vector<int32_t> ids = integers_in(word);
      if (ids.size() == 1) rules.suppressed.push_back(ids[0]);
      if (ids.size() > 1) rules.suppressed_words.push_back(ids);
    }
  }
  return rules;
}

GenerateOptions defaults_of(const model::Origin& origin, const model::Spec& spec,
                            const GenerateOptions& program) {
  GenerateOptions o = program;
  Sampling& s = o.sampling;
  const auto read = [&](const char* key, auto& value) {
    const nlohmann::ordered_json* json = value_under(origin, key);
    if (json == nullptr) return false;
    using Value = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, bool>) {
      if (!json->is_boolean()) return false;
    } else {
      if (!json->is_number()) return false;
    }
    value = json->get<Value>();
    return true;
  };
  bool draws = !spec.encoder;
  if (read("do_sample", draws) && draws) {
    s.temperature = 1, s.top_k = 50, s.top_p = 1;  // the defaults of transformers
    read("temperature", s.temperature);
    read("top_k", s.top_k);
    read("top_p", s.top_p);
    read("min_p", s.min_p);
    read("typical_p", s.typical_p);
  }
  if (!draws) s.temperature = 0;
  read("repetition_penalty", s.repetition_penalty);
  read("no_repeat_ngram_size", s.no_repeat_ngram);
  read("num_beams", o.beams);
  read("length_penalty", o.length_penalty);
  o.early_stopping = early_stopping_of(origin);
  // min_length and max_length count the start token of a decoder.
  if (int64_t most = 0; spec.encoder && read("max_length", most) && most > 1)
    o.max_tokens = most - 1;
  read("max_new_tokens", o.max_tokens);
  if (int64_t least = 0; spec.encoder && read("min_length", least))
    o.min_tokens = std::max<int64_t>(o.min_tokens, least - 1);
  read("min_new_tokens", o.min_tokens);
  return o;
}

std::vector<std::string> stops(const GenerationRules& rules, const GenerateOptions& options) {
  std::vector<std::string> texts = options.stop;
  if (!options.ignore_end) texts.insert(texts.end(), rules.stop.begin(), rules.stop.end());
  return texts;
}

bool ends(const GenerationRules& rules, const GenerateOptions& options, int32_t id) {
  return contains(options.stop_ids, id) || (!options.ignore_end && contains(rules.ends, id));
}

void penalise_tokens(float* logits, const Restraints& r) {
  const Sampling& s = r.options.sampling;
  for (const auto& [id, count] : r.counts.counts()) {
    float& logit = logits[id];
    // Keskar et al. 2019, section 4.1, as transformers applies it: once for each distinct token.
    if (s.repetition_penalty != 1)
      logit = logit > 0 ? logit / s.repetition_penalty : logit * s.repetition_penalty;
    if (count > 0) logit -= s.presence_penalty + s.frequency_penalty * static_cast<float>(count);
  }
}

void penalise_dry(float* logits, int64_t vocabulary, const Restraints& r,
                  const std::vector<int32_t>& generated) {
  const Sampling& s = r.options.sampling;
  if (s.dry_multiplier > 0 && s.dry_penalty_last_n != 0)
    penalise_repetition(logits, vocabulary, seen_by(r, generated), s);
}

void restrain(float* logits, int64_t vocabulary, const Restraints& r,
              const std::vector<int32_t>& generated) {
  const GenerateOptions& o = r.options;
  const auto n = std::ssize(generated);
  if (n < std::ssize(o.forced)) return force(logits, vocabulary, o.forced[static_cast<size_t>(n)]);
  if (n == 0 && r.rules.forced_first) return force(logits, vocabulary, *r.rules.forced_first);
  if (r.rules.forced_last && n + 1 == o.max_tokens && !o.ignore_end)
    return force(logits, vocabulary, *r.rules.forced_last);
  for (const auto& [id, bias] : o.sampling.logit_bias) logits[id] += bias;
  if (!among_filters(o, "penalties")) penalise_tokens(logits, r);
  if (o.sampling.no_repeat_ngram > 0) {
    const std::vector<int32_t> seen = seen_by(r, generated);
    forbid_ngrams(logits, vocabulary, seen, seen, o.sampling.no_repeat_ngram);
  }
  if (r.rules.source_ngram > 0 && r.source != nullptr)
    forbid_ngrams(logits, vocabulary, seen_by(r, generated), *r.source, r.rules.source_ngram);
  if (!among_filters(o, "dry")) penalise_dry(logits, vocabulary, r, generated);
  std::fill(logits + std::min(vocabulary, r.rules.tokens), logits + vocabulary, kNever);
  for (const int32_t id : r.rules.suppressed) set(logits, vocabulary, id, kNever);
  if (!r.rules.suppressed_words.empty())
    forbid_words(logits, vocabulary, seen_by(r, generated), r.rules.suppressed_words);
  if (n == 0)
    for (const int32_t id : r.rules.suppressed_first) set(logits, vocabulary, id, kNever);
  if (n < o.min_tokens) {
    for (const int32_t id : r.rules.ends) set(logits, vocabulary, id, kNever);
    for (const int32_t id : o.stop_ids) set(logits, vocabulary, id, kNever);
  }
  if (o.constrain) o.constrain(generated, {logits, static_cast<size_t>(vocabulary)});
}

void check_options(const GenerateOptions& o, int64_t vocabulary) {
  check_fields(o);
  check_field(o.beams == 1 || o.generations <= o.beams, "generations",
              "{}; expected at most {}, the number of beams", o.generations, o.beams);
  check_field(o.beam_groups <= o.beams && o.beams % o.beam_groups == 0, "beam_groups",
              "{}; expected a divisor of the number of beams, {}", o.beam_groups, o.beams);
  check_field(o.required.empty() || o.beams > 1, "required",
              "given without beams; expected at least 2 `beams`");
  check_field(o.required.empty() || o.beam_groups == 1, "required",
              "given with `beam_groups`; expected one of them");
  check_field(o.logprobs <= vocabulary, "logprobs",
              "{}; expected at most {}, the size of the vocabulary", o.logprobs, vocabulary);
  static_cast<void>(filter_order(o.sampling.samplers));
  check_field(o.sampling.mirostat != 1, "mirostat", "1; expected 0, or 2 for Mirostat 2.0");
  for (const std::string& text : o.sampling.dry_sequence_breakers)
    check_field(!text.empty(), "dry_sequence_breakers", "\"\" is empty; expected a text");
  for (const std::string& text : o.required)
    check_field(!text.empty(), "required", "\"\" is empty; expected a text");
  for (const std::string& text : o.banned)
    check_field(!text.empty(), "banned", "\"\" is empty; expected a text");
  const auto known = [&](const char* field, int32_t id) {
    check_field(id >= 0 && id < vocabulary, field, "token id {}; expected 0 to {}", id,
                vocabulary - 1);
  };
  for (const auto& [id, bias] : o.sampling.logit_bias) known("logit_bias", id);
  for (const int32_t id : o.forced) known("forced", id);
  for (const int32_t id : o.sampling.dry_breaker_ids) known("dry_breaker_ids", id);
}

}  // namespace fovea::infer
