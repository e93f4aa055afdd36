#pragma once

#include "fovea/infer/generate.h"
#include "generate/rules.h"
#include "transformer/transformer.h"

namespace fovea::train {

// How a model answers prompts in reinforcement.
struct AnswerSettings {
  int64_t generations = 1;  // answers to each prompt
  int64_t tokens = 256;     // maximum of an answer
  double temperature = 1;
  int64_t logprobs = -1;  // see GenerateOptions
  DType compute = DType::f32;
};
// Returns the answers of a model to prompts, answer by answer, in the order of the prompts. They
// are drawn from the whole distribution (temperature 0: greedily); those to prompt p depend only on
// the prompt, the weights and seeds[p]. Keys and values are f32.
std::vector<infer::Generation> generate_answers(
    const model::Transformer& model, const text::Tokenizer& tokenizer,
    const infer::GenerationRules& rules, const std::vector<const std::vector<int32_t>*>& prompts,
    const std::vector<uint64_t>& seeds, const AnswerSettings& settings);

// Returns the most memory that generation takes, if no prompt has more than `longest` tokens: keys
// and values, and the tensors of one step.
uint64_t generation_bytes(const model::Transformer& model, int64_t prompts, int64_t longest,
                          const AnswerSettings& settings);

}  // namespace fovea::train
