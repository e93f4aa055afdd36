#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fovea/infer/generate.h"
#include "generate/token_counts.h"
#include "loading/loading.h"

namespace fovea::infer {

// A checkpoint's settings for generation, from generation_config.json or config.json.
struct GenerationRules {
  std::vector<int32_t> ends = {};     // end-of-text tokens
  std::optional<int32_t> start = {};  // decoder_start_token_id: before the first generated token
  std::optional<int32_t> forced_first = {};  // forced_bos_token_id
  std::optional<int32_t> forced_last = {};   // forced_eos_token_id: at the length limit
  std::vector<int32_t> suppressed = {};      // suppress_tokens, and bad_words_ids of one token
  std::vector<std::vector<int32_t>> suppressed_words = {};  // bad_words_ids of several tokens
  std::vector<int32_t> suppressed_first = {};               // begin_suppress_tokens
  std::vector<std::string> stop = {};  // stop_strings: texts that end a text like `ends`
  // Ids from here on are never generated: the number of tokens of the tokenizer, which may be
  // smaller than the model's vocabulary. The scheduler sets it.
  int64_t tokens = std::numeric_limits<int64_t>::max();
  // encoder_no_repeat_ngram_size: no sequence of this many tokens of the prompt, or of the input of
  // an encoder, is generated; 0 = off.
  int64_t source_ngram = 0;
  float length_penalty = 1;  // length penalty of beam search
  EarlyStopping early_stopping = EarlyStopping::no;
};

GenerationRules rules_of(const model::Origin& origin, const std::vector<int32_t>& end_ids);

// The rules for the logits of one generation. `counts` covers the prompt and the generated tokens.
struct Restraints {
  const GenerationRules& rules;
  const GenerateOptions& options;
  const std::vector<int32_t>& prompt;
  const TokenCounts& counts;
  const std::vector<int32_t>* source = nullptr;  // of source_ngram
};

// Applies the rules to the logits [V] (or log-probabilities) of the token after `generated`: bias,
// penalties that are not among the filters, repeated n-grams, forbidden and forced tokens, and
// options.constrain. Ids that the
// tokenizer lacks have a logit of -infinity.
void restrain(float* logits, int64_t vocabulary, const Restraints& restraints,
              const std::vector<int32_t>& generated);

// Apply the repetition, presence and frequency penalties, and DRY.
void penalise_tokens(float* logits, const Restraints& restraints);
void penalise_dry(float* logits, int64_t vocabulary, const Restraints& restraints,
                  const std::vector<int32_t>& generated);

// Returns `program` overridden by the settings in generation_config.json or config.json. An
// encoder-decoder decodes greedily unless do_sample is set.
GenerateOptions defaults_of(const model::Origin& origin, const model::Spec& spec,
                            const GenerateOptions& program = {});

// Returns the texts before which the generation ends.
std::vector<std::string> stops(const GenerationRules& rules, const GenerateOptions& options);

// Returns whether the token ends the generation.
bool ends(const GenerationRules& rules, const GenerateOptions& options, int32_t id);

// Returns `spec` if the model generates text token by token. Otherwise throws InvalidArgument, with
// the kind of the model and the command that fits it.
const model::Spec& checked_writer(const model::Spec& spec);

// Throws InvalidArgument, naming the field, if a value is out of range.
void check_options(const GenerateOptions& options, int64_t vocabulary);

}  // namespace fovea::infer
