#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fovea {

struct EmbedderTraining {
  std::string model;  // a directory to start from, as Embedder::open() takes it
  std::string out;    // becomes a sentence-transformers directory
  // Pairs of texts that belong together, triplets (and one that does not), or scored pairs: CSV,
  // TSV or JSON lines. The first two learn to find the right text among those of the batch, the
  // last to have the scores as cosines.
  std::string data;
  std::string validation;  // scored pairs for Spearman's correlation; empty = none

  int64_t epochs = 1;
  int64_t batch = 64;  // examples in a step; memory does not depend on it
  double learning_rate = 2e-5;
  double warmup = 0.1;         // the part of the steps in which the rate rises
  double weight_decay = 0.01;  // of matrices and token embeddings
  double temperature = 0.05;   // that cosines are divided by
  // Vectors cut to each of these widths learn too (Kusupati et al. 2022).
  std::vector<int64_t> dimensions;
  int64_t evaluate_every = 0;  // steps; 0 = before and behind all of them
  uint64_t seed = 1337;
};

struct EmbedderProgress {
  int64_t step = 0, steps = 0;
  double loss = 0, learning_rate = 0, seconds = 0;
  std::optional<double> spearman;  // where it was just measured, in percent
};

struct EmbedderResult {
  int64_t steps = 0, examples = 0;
  double loss = 0, seconds = 0;
  std::optional<double> spearman_before, spearman;  // in percent
};

// Trains the Transformer of an embedder; Dense layers stay as they are. `progress` returns false to
// stop: what was learnt until then is written. Failed where the loss is not finite.
EmbedderResult train_embedder(const EmbedderTraining& training,
                              const std::function<bool(const EmbedderProgress&)>& progress = {});

}  // namespace fovea
