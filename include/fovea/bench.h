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
  double peak_flops = 0;      // measured on this machine in this precision just before
  uint64_t peak_bytes = 0;    // resident
};

// Training steps of a preset on made-up text, timed one by one. Batch 0 = the benchmark's own:
// 12 for nano, 16 for baby.
TrainBench bench_training(const std::string& preset, Precision precision, int64_t steps,
                          int64_t batch = 0);

struct GenerationBench {
  std::string isa;
  int threads = 0;
  int64_t prompt = 0, decode = 0, batch = 0;  // tokens, tokens of each sequence, sequences
  int64_t weight_bytes = 0;
  double prompt_seconds = 0;  // one sequence of `prompt` tokens, all at once
  double prompt_tokens_per_second = 0;
  double decode_seconds = 0;            // `decode` steps of all sequences, behind 16 tokens each
  double decode_tokens_per_second = 0;  // of all sequences together
  double first_token_seconds = 0;       // 16 tokens read and the next one chosen
  uint64_t peak_bytes = 0;              // resident
};

// How fast a decoder reads and writes tokens, made-up ones.
GenerationBench bench_generation(const Model& model, int64_t prompt, int64_t decode, int64_t batch);

struct TranslationBench {
  std::string isa;
  int threads = 0;
  int64_t lines = 0, source_tokens = 0, tokens = 0;  // read and written, ends included
  double seconds = 0;                                // the median of the runs
  double lines_per_second = 0, tokens_per_second = 0;
  uint64_t peak_bytes = 0;  // resident
};

// Times translating lines, tokenising included, after a run that is not timed.
TranslationBench bench_translation(const Model& model, const std::vector<std::string>& lines,
                                   int64_t runs, const TranslateOptions& options);

}  // namespace fovea
