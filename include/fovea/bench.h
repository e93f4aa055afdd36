#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/infer/embed.h"
#include "fovea/infer/image_model.h"
#include "fovea/infer/transcribe.h"
#include "fovea/infer/translate.h"
#include "fovea/model/model.h"
#include "fovea/train/train.h"

namespace fovea {

// How bench_heads() computes the heads of attention: all in one call, or one call for each.
enum class HeadsWay { batched, loop };

struct BenchOptions {
  // Training: a preset of a decoder or of an encoder of images.
  std::string preset = "nano";
  train::Precision precision = train::Precision::automatic;  // training: of matrix products
  int64_t steps = 50;                                        // training: steps to measure
  int64_t prompt = 512;                                      // generation: tokens of the prompt
  int64_t decode = 64;  // generation: tokens to generate per sequence
  int64_t depth = 16;   // generation: tokens before the measured decoding
  // Sequences or images per step. 0 = training: 16 for baby, 8 for images, else the batch of
  // preset_training(); generation: 1.
  int64_t batch = 0;
  HeadsWay heads = HeadsWay::batched;  // attention of one layer
  // Prompts, embedding, translation, transcription, images: measured runs, after one that is not.
  int64_t runs = 5;
};
void visit(BenchOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

struct TrainBench {
  std::string preset, precision, isa;
  int threads = 0;
  int64_t batch = 0, context = 0, steps = 0;
  double milliseconds_per_step = 0;  // median
  double sequences_per_second = 0;   // or images
  double tokens_per_second = 0;      // or patches
  double flops_per_step = 0;         // matrix products and attention, forward and backward
  // FLOP/s of this machine in this precision, measured just before the benchmark.
  double peak_flops = 0;
  uint64_t peak_bytes = 0;  // peak resident memory of the process
};

// Measures training steps of a preset on random tokens or images, each timed separately. Throws
// InvalidArgument if the preset is unknown or of another kind, OutOfMemory if the training does
// not fit into memory. All benchmarks throw InvalidArgument if an option is out of range. They use
// all compute threads, so run one at a time.
TrainBench bench_training(const BenchOptions& options);

struct HeadsBench {
  std::string preset, precision, isa;
  int threads = 0;
  int64_t batch = 0, context = 0, heads = 0, head_width = 0;
  double milliseconds = 0;  // median of a forward and a backward pass
  double tokens_per_second = 0;
};

// Measures the attention of one layer of a preset in training, without its linear layers, on random
// numbers. Throws InvalidArgument if the preset is unknown or not decoder-only.
HeadsBench bench_heads(const BenchOptions& options);

struct GenerationBench {
  std::string isa;
  int threads = 0;
  int64_t prompt = 0, decode = 0, batch = 0;  // prompt tokens, new tokens per sequence, sequences
  int64_t depth = 0;                          // tokens before the measured decoding
  int64_t weight_bytes = 0;
  std::vector<model::FormatBytes> weight_formats;  // largest first
  double prompt_seconds = 0;  // reading one sequence of `prompt` tokens and choosing the next one
  double prompt_tokens_per_second = 0;
  double decode_seconds = 0;  // `decode` steps of all sequences, after prompts of `depth` tokens
  double decode_tokens_per_second = 0;  // summed over all sequences
  // Reading 16 tokens, or `depth` if it is less, and choosing the next one.
  double first_token_seconds = 0;
  uint64_t peak_bytes = 0;  // peak resident memory
};

// Measures how fast a decoder-only model reads a prompt of random tokens and generates tokens.
// Throws InvalidArgument for other models, or if the tokens exceed the model's context.
GenerationBench bench_generation(const model::Model& model, const BenchOptions& options);

struct EmbedBench {
  std::string isa;
  int threads = 0;
  int64_t sentences = 0, tokens = 0;
  double seconds = 0;  // median of the runs, tokenisation included
  double sentences_per_second = 0, tokens_per_second = 0;
};

// Measures the embedding of `texts`. Throws InvalidArgument if there are none, and the errors of
// Embedder::embed().
EmbedBench bench_embedding(const infer::Embedder& embedder, const std::vector<std::string>& texts,
                           const BenchOptions& options);

struct ImageBench {
  std::string isa;
  int threads = 0;
  int64_t images = 0;
  double seconds = 0;  // median of the runs, without decoding of files
  double images_per_second = 0;
};

// Measures the labels (of a model that has them) or the vectors of `count` random images of the
// model's size, in batches of BenchOptions::batch (0 = 8). Throws InvalidArgument if the count is
// below 1.
ImageBench bench_images(const infer::ImageModel& model, int64_t count, const BenchOptions& options);

struct TranslationBench {
  std::string isa;
  int threads = 0;
  int64_t lines = 0;
  int64_t source_tokens = 0, tokens = 0;  // read and generated, with end-of-sequence tokens
  double seconds = 0;                     // median of the runs, tokenisation included
  double lines_per_second = 0, tokens_per_second = 0;
  uint64_t peak_bytes = 0;  // peak resident memory
};

// Measures the translation of `lines`. Throws InvalidArgument if there are none, and the errors of
// translate().
TranslationBench bench_translation(const model::Model& model, const std::vector<std::string>& lines,
                                   const infer::TranslateOptions& translation,
                                   const BenchOptions& options);

struct TranscriptionBench {
  std::string isa;
  int threads = 0;
  int64_t windows = 0, tokens = 0;  // decoded together; generated in all of them
  double audio_seconds = 0;
  double seconds = 0;           // median of the runs, spectrograms included
  double audio_per_second = 0;  // seconds of audio per second
  uint64_t peak_bytes = 0;      // peak resident memory
};

// Measures the transcription of `windows` windows of noise, with exactly `max_tokens` tokens in
// each; of the other options, `beams` counts. Throws the errors of transcribe().
TranscriptionBench bench_transcription(const model::Model& model,
                                       const infer::TranscribeOptions& transcription,
                                       const BenchOptions& options);

// The rates of this machine that bound those of a model.
struct MachineBench {
  std::string cpu, isa;
  int threads = 0;
  // Matrix products in fp32 and bf16 on all threads, in FLOP/s; without instructions for bf16, such
  // a product is computed in fp32.
  double fp32_flops = 0, bf16_flops = 0;
  double int8_operations = 0;  // products of int8 weights and activations, in operations per second
  // Bytes per second read from memory by one thread, and by all.
  double one_thread_bandwidth = 0, bandwidth = 0;
};

// Measures the machine for about a second.
MachineBench bench_machine();

}  // namespace fovea
