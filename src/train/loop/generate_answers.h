#pragma once

#include "fovea/infer/generate.h"
#include "generate/rules.h"
#include "transformer/transformer.h"

namespace fovea::train {

// A prompt that a model answers.
struct AnswerPrompt {
  const std::vector<int32_t>* ids;
  uint64_t seed = 0;
  int64_t tokens = 256;  // maximum of an answer
};

// How a model answers prompts in training.
struct AnswerSettings {
  int64_t generations = 1;  // answers to each prompt
  double temperature = 1;
  int64_t logprobs = -1;  // see GenerateOptions
  DType compute = DType::f32;
};
// Returns the answers of a model to prompts, answer by answer, in the order of the prompts. They
// are drawn from the whole distribution (temperature 0: greedily); those to a prompt depend only
// on it, its seed and the weights. Keys and values are f32.
std::vector<infer::Generation> generate_answers(const model::Transformer& model,
                                                const text::Tokenizer& tokenizer,
                                                const infer::GenerationRules& rules,
                                                const std::vector<AnswerPrompt>& prompts,
                                                const AnswerSettings& settings);

// Returns the seed of the answers to the n-th use of a prompt in a run with this seed.
uint64_t seed_of_answers(uint64_t seed, uint64_t n);

// Returns the most memory that generation takes, if no prompt has more than `longest` tokens and no
// answer more than `tokens`: keys and values, and the tensors of one step.
uint64_t generation_bytes(const model::Transformer& model, int64_t prompts, int64_t longest,
                          int64_t tokens, const AnswerSettings& settings);

}  // namespace fovea::train
