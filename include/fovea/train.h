#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/model.h"

namespace fovea {

// inverse_root: after the warm-up the rate falls with the root of the step (Vaswani et al.
// 2017, 5.3).
enum class Schedule { cosine, trapezoid, constant, inverse_root };
// automatic: what the run began with; a new run takes bf16 where the CPU multiplies it natively,
// else fp32.
enum class Precision { automatic, fp32, bf16 };

// What a model learns. next_token: to go on with a text (decoders). masked: the tokens of a text
// that were hidden (encoders; Devlin et al. 2019). spans: the stretches that were cut out of a text
// (encoder-decoders; Raffel et al. 2020). pairs: a target text from a source text
// (encoder-decoders). labels: the label of a text. automatic: pairs or labels where such data is
// given, else of a text what suits the model.
enum class Objective { automatic, next_token, masked, spans, pairs, labels };

// Whose weights are averaged: of the last evaluations or of the best ones.
enum class Averaged { last, best };

struct TrainOptions {
  std::vector<std::string> data;  // text files, folders, JSON lines
  // Instead of `data`: two files whose lines correspond, source and target, or one file of lines
  // "source<TAB>target".
  std::vector<std::string> pairs;
  std::vector<std::string> validation_pairs;  // empty = the last part of the pairs is held out
  std::string source_prefix;  // pairs: in front of every source, "translate German to English: "
  // Instead of `data`: files of lines "text<TAB>label", "text<TAB>second text<TAB>label", or JSON
  // lines with "text", perhaps "text_pair", and "label".
  std::vector<std::string> labels;
  std::vector<std::string> validation_labels;  // empty = the last part is held out
  Objective objective = Objective::automatic;
  std::string out;   // the model's directory; training state lives in it too
  std::string from;  // a directory to start from instead of random weights

  int64_t steps = 2000;  // optimiser steps
  int64_t batch = 12;    // sequences in one forward pass; of pairs see batch_tokens
  // Pairs: tokens of the longer side in one forward pass at most, padding included. Sequences of
  // about the same length share a batch.
  int64_t batch_tokens = 4096;
  int64_t length = 0;  // tokens of a text read at once; 0 = the context, from a model at most 1024
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
  // The weight of all labels together beside the right one (Szegedy et al. 2016); in training only.
  double label_smoothing = 0;
  double mask = 0.15;    // masked, spans: the part of the tokens that is asked for
  double mean_span = 3;  // spans: tokens in one, on the average
  // What is evaluated and written is the mean of the weights at this many evaluations; 1 = the
  // weights as they are.
  int64_t average = 1;
  Averaged average_of = Averaged::last;

  Precision precision = Precision::automatic;
  uint64_t seed = 1337;

  int64_t evaluate_every = 250;    // steps; 0 = only at the end
  int64_t evaluate_windows = 256;  // of held-out text, read by one evaluation; 0 = all
  int64_t sample_every = 500;      // steps; 0 = never
  int64_t sample_tokens = 120;
  int64_t save_every = 500;  // steps; 0 = only at the end
  int64_t keep = 2;          // snapshots kept
  int64_t patience = 0;      // evaluations without improvement before it stops; 0 = never
  // What improvement is measured by: "loss", or a figure that the data has: "bleu" or "chrf" of
  // pairs, "accuracy" or "f1" of labels, "accuracy" of masked tokens; automatic: bleu of pairs that
  // are translated, else loss.
  std::string best_by = "automatic";
  int64_t bleu_lines = 1000;  // held-out pairs that an evaluation translates, greedily; 0 = none
  int64_t bad_steps = 3;      // steps in a row with a non-finite loss or gradient before it stops

  uint64_t memory_limit = 0;         // bytes; 0 = what the machine or the cgroup has free
  uint64_t token_cache = 256 << 20;  // bytes; a larger text goes through a memory-mapped file
  bool allow_change = false;         // resume although data or options differ from the snapshot's
};

// How a preset is trained well: steps, batch, rates.
TrainOptions preset_training(const std::string& preset);

// What a run will be, before it starts.
struct TrainPlan {
  Spec spec;
  std::string objective;  // "next_token", "masked", "spans", "pairs", "labels" or "embedding"
  std::string from;  // "random weights", the directory it starts from, or the snapshot it resumes
  int64_t first_step = 0, steps = 0;  // the run goes from the first of these to the second
  int64_t parameters = 0;
  int64_t training_tokens = 0, validation_tokens = 0;        // in the data
  int64_t training_sequences = 0, validation_sequences = 0;  // pairs or labelled texts; else 0
  int64_t vocabulary = 0;
  int64_t tokens_per_step = 0;  // on the average, without padding
  double epochs = 0;            // how often the training part is read
  // process_bytes: code, threads, the data in memory, and what loading and saving need.
  uint64_t weight_bytes = 0, optimizer_bytes = 0, activation_bytes = 0, process_bytes = 0,
           total_bytes = 0, available_bytes = 0;
  double flops_per_step = 0;
  double seconds = 0;  // from a short measurement of this machine's matrix products
  std::string precision, isa;
  int threads = 0;
  std::vector<std::string> notes;  // files used, characters dropped, ...
};

struct TrainProgress {
  int64_t step = 0, steps = 0;
  double epoch = 0;
  double loss = 0;                        // of the last step, mean over its tokens
  double bits_per_byte = 0;               // of the last validation
  std::optional<double> validation_loss;  // of the last validation
  std::optional<double> best_loss;        // of the best one
  // More about these two, by name, such as "accuracy".
  std::vector<std::pair<std::string, double>> figures = {}, best_figures = {};
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
  std::vector<std::pair<std::string, double>> figures = {};  // more about it, by name
  // Figures before the first step, where the task measures them.
  std::vector<std::pair<std::string, double>> start_figures = {};
  double bits_per_byte = 0;
  double seconds = 0, tokens_per_second = 0;
  uint64_t peak_bytes = 0;  // resident, of the process so far
  bool interrupted = false, stopped_early = false;
};

// The plan alone; reads the data, checks every option, touches nothing on disk.
TrainPlan plan_training(const Spec& spec, const TrainOptions& options);

// Trains, and resumes where `options.out` holds a snapshot of the same run. `planned` is told the
// plan before the first step (false = stop there), `progress` every step (false = save and leave).
// `reading` is told before the plan, and more than once from 0 to 1, how far the texts are read
// (false = stop there: nothing is left on disk). Throws Error Failed if the numbers go bad.
TrainResult train(const Spec& spec, const TrainOptions& options,
                  const std::function<bool(const TrainPlan&)>& planned = {},
                  const std::function<bool(const TrainProgress&)>& progress = {},
                  const std::function<bool(double fraction)>& reading = {});

}  // namespace fovea
