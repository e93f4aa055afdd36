#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/model.h"

namespace fovea {

enum class Schedule { cosine, trapezoid, constant };
// automatic: bf16 where the CPU multiplies it natively, else fp32.
enum class Precision { automatic, fp32, bf16 };

struct TrainOptions {
  std::vector<std::string> data;  // text files, folders, JSON lines
  std::string out;                // the model's directory; training state lives in it too
  std::string from;               // a directory to start from instead of random weights

  int64_t steps = 2000;     // optimiser steps
  int64_t batch = 12;       // sequences in one forward pass
  int64_t accumulate = 1;   // forward passes in one optimiser step
  double validation = 0.1;  // the text's last part, held out
  // "char", "bpe:8000", "wordpiece:8000" or "unigram:8000" (made from the data), or a model
  // directory or tokenizer.json to take it from. A run with `from` has that model's.
  std::string tokenizer = "char";
  int64_t max_vocabulary = 0;  // char: keep the most frequent characters only; 0 = all

  double learning_rate = 1e-3;  // at its peak
  double final_rate = 0.1;      // the last step's rate as a fraction of the peak
  int64_t warmup = 100;         // steps from 0 to the peak
  Schedule schedule = Schedule::cosine;
  double decay_fraction = 0.2;  // trapezoid: the last part of the steps, in which the rate falls
  double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;
  double weight_decay = 0.1;  // of matrices and token embeddings; nothing else decays
  double clip = 1.0;          // the gradient's norm at most; 0 = off

  Precision precision = Precision::automatic;
  uint64_t seed = 1337;

  int64_t evaluate_every = 250;    // steps; 0 = only at the end
  int64_t evaluate_windows = 256;  // of the held-out part, read by one evaluation; 0 = all
  int64_t sample_every = 500;      // steps; 0 = never
  int64_t sample_tokens = 120;
  int64_t save_every = 500;  // steps; 0 = only at the end
  int64_t keep = 2;          // snapshots kept
  int64_t patience = 0;      // evaluations without improvement before it stops; 0 = never
  int64_t bad_steps = 3;     // steps in a row with a non-finite loss or gradient before it stops

  uint64_t memory_limit = 0;         // bytes; 0 = what the machine or the cgroup has free
  uint64_t token_cache = 256 << 20;  // bytes; a larger text goes through a memory-mapped file
  bool allow_change = false;         // resume although data or options differ from the snapshot's
};

// How a preset is trained well: steps, batch, rates.
TrainOptions preset_training(const std::string& preset);

// What a run will be, before it starts.
struct TrainPlan {
  Spec spec;
  std::string from;  // "random weights", the directory it starts from, or the snapshot it resumes
  int64_t first_step = 0;
  int64_t parameters = 0;
  int64_t training_tokens = 0, validation_tokens = 0;  // in the data
  int64_t vocabulary = 0;
  int64_t tokens_per_step = 0;
  double epochs = 0;  // how often the training part is read
  uint64_t weight_bytes = 0, optimizer_bytes = 0, activation_bytes = 0, total_bytes = 0,
           available_bytes = 0;
  double flops_per_step = 0;
  double seconds = 0;  // from a short measurement of this machine's matrix products
  std::string precision, isa;
  int threads = 0;
  std::vector<std::string> notes;  // files used, characters dropped, ...
};

struct TrainProgress {
  int64_t step = 0, steps = 0;
  double epoch = 0;
  double loss = 0;  // of the last step, mean over its tokens
  std::optional<double> validation_loss, best_loss;
  double bits_per_byte = 0;  // of the last validation
  double learning_rate = 0, gradient_norm = 0;
  double tokens_per_second = 0, seconds_left = 0, step_seconds = 0;
  int64_t tokens = 0;       // seen so far
  uint64_t peak_bytes = 0;  // resident
  // What just happened besides the step; empty = nothing.
  std::string sample;  // what the model writes
  std::string saved;   // the snapshot that is now safe on disk
  std::string warning;
};

struct TrainResult {
  int64_t step = 0;
  double loss = 0;
  // On held-out text, of the weights in the directory's model.safetensors; 0 = never evaluated.
  double best_loss = 0;
  double bits_per_byte = 0;
  double seconds = 0, tokens_per_second = 0;
  bool interrupted = false, stopped_early = false;
};

// The plan alone; reads the data, checks every option, touches nothing on disk.
TrainPlan plan_training(const Spec& spec, const TrainOptions& options);

// Trains, and resumes where `options.out` holds a snapshot of the same run. `planned` is told the
// plan before the first step (false = stop there), `progress` every step (false = save and leave).
// Throws Error Failed if the numbers go bad.
TrainResult train(const Spec& spec, const TrainOptions& options,
                  const std::function<bool(const TrainPlan&)>& planned = {},
                  const std::function<bool(const TrainProgress&)>& progress = {});

}  // namespace fovea
