#pragma once

#include <optional>
#include <vector>

#include "families/directory.h"
#include "fovea/generate.h"
#include "generate/token_counts.h"

namespace fovea {

// What a checkpoint says of generation, in generation_config.json or config.json.
struct GenerationRules {
  std::vector<int32_t> ends = {};     // any of these ends a text
  std::optional<int32_t> start = {};  // decoder_start_token_id: before an answer's first token
  std::optional<int32_t> forced_first = {};  // forced_bos_token_id
  std::optional<int32_t> forced_last = {};  // forced_eos_token_id: where the length is at its limit
  std::vector<int32_t> suppressed = {};     // suppress_tokens, and bad_words_ids of one token
  std::vector<int32_t> suppressed_first = {};
  float length_penalty = 1;  // of beams
  EarlyStopping early_stopping = EarlyStopping::no;
};

GenerationRules rules_of(const Origin& origin, const std::vector<int32_t>& end_ids);

// What one answer is held to. `prompt`: the tokens that count as repeated besides the written ones.
// `counts`: of both.
struct Restraints {
  const GenerationRules& rules;
  const GenerateOptions& options;
  const std::vector<int32_t>& prompt;
  const TokenCounts& counts;
};

// Changes logits [V] (or log-probabilities) for the token behind `written`: bias, penalties,
// repeated n-grams, what may not come yet, and what must come.
void restrain(float* logits, int64_t vocabulary, const Restraints& restraints,
              const std::vector<int32_t>& written);

// generation_config.json's options, over the program's.
GenerateOptions defaults_of(const Origin& origin, const Spec& spec,
                            const GenerateOptions& program = {});

bool ends(const GenerationRules& rules, const GenerateOptions& options, int32_t id);

// The spec of a model that predicts text token by token. InvalidArgument for every other one, with
// what it is and which command fits it.
const Spec& checked_writer(const Spec& spec);

// InvalidArgument, naming the option, where one is out of its range.
void check_options(const GenerateOptions& options, int64_t vocabulary);

}  // namespace fovea
