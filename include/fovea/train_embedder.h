#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fovea {

struct EmbedderTraining {
  std::string model;  // initial model; a directory that Embedder::open() accepts
  std::string out;    // output, a sentence-transformers directory
  // CSV, TSV or JSON lines of pairs of related texts, triplets (with an unrelated third text) or
  // scored pairs. Pairs and triplets train by in-batch contrast; scored pairs train cosines to
  // match the scores.
  std::string data;
  std::string validation;  // scored pairs for Spearman's correlation; empty = none

  int64_t epochs = 1;
  int64_t batch = 64;  // examples per step; memory use does not depend on it
  double learning_rate = 2e-5;
  double warmup = 0.1;         // fraction of the steps in which the rate rises
  double weight_decay = 0.01;  // applies to matrices and token embeddings only
  double temperature = 0.05;   // divides the cosines
  // Also train vectors truncated to each of these widths (Kusupati et al. 2022).
  std::vector<int64_t> dimensions;
  // Evaluate every n steps; 0 = only before the first and after the last step.
  int64_t evaluate_every = 0;
  uint64_t seed = 1337;
};

struct EmbedderProgress {
  int64_t step = 0, steps = 0;
  double loss = 0, learning_rate = 0, seconds = 0;
  std::optional<double> spearman;  // in percent; set only if it was just measured
};

struct EmbedderResult {
  int64_t steps = 0, examples = 0;
  double loss = 0, seconds = 0;
  std::optional<double> spearman_before, spearman;  // in percent
};

// Trains the Transformer of an embedder; its Dense layers stay unchanged. `progress` is called
// after every step; return false to stop and write the current weights. Throws Failed if the loss
// is not finite.
EmbedderResult train_embedder(const EmbedderTraining& training,
                              const std::function<bool(const EmbedderProgress&)>& progress = {});

}  // namespace fovea
