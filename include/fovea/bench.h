#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/model.h"
#include "fovea/train.h"
#include "fovea/translate.h"

namespace fovea {

struct TrainBench {
  std::string preset, precision, isa;
  int threads = 0;
  int64_t batch = 0, context = 0, steps = 0;
  double milliseconds_per_step = 0;  // median
  double tokens_per_second = 0;
  double flops_per_step = 0;  // matrix products and attention, forward and backward
  double peak_flops = 0;    // measured on this machine in this precision, just before the benchmark
  uint64_t peak_bytes = 0;  // peak resident memory
};

// Measures training steps of a preset on random text, each timed separately. Batch 0 = the preset's
// benchmark batch: 12 for nano, 16 for baby.
TrainBench bench_training(const std::string& preset, Precision precision, int64_t steps,
                          int64_t batch = 0);

struct GenerationBench {
  std::string isa;
  int threads = 0;
  int64_t prompt = 0, decode = 0, batch = 0;  // prompt tokens, new tokens per sequence, sequences
  int64_t weight_bytes = 0;
  double prompt_seconds = 0;  // one sequence of `prompt` tokens, in one pass
  double prompt_tokens_per_second = 0;
  double decode_seconds = 0;  // `decode` steps of all sequences, each after a prompt of 16 tokens
  double decode_tokens_per_second = 0;  // summed over all sequences
  double first_token_seconds = 0;       // reading 16 tokens and choosing the next one
  uint64_t peak_bytes = 0;              // peak resident memory
};

// Measures how fast a decoder reads a prompt and generates tokens. The tokens are random.
GenerationBench bench_generation(const Model& model, int64_t prompt, int64_t decode, int64_t batch);

struct TranslationBench {
  std::string isa;
  int threads = 0;
  int64_t lines = 0, source_tokens = 0, tokens = 0;  // tokens include the end-of-sequence tokens
  double seconds = 0;                                // median of the runs
  double lines_per_second = 0, tokens_per_second = 0;
  uint64_t peak_bytes = 0;  // peak resident memory
};

// Measures the translation of `lines`, tokenisation included. An untimed run comes first.
TranslationBench bench_translation(const Model& model, const std::vector<std::string>& lines,
                                   int64_t runs, const TranslateOptions& options);

}  // namespace fovea
