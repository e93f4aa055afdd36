#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fovea/train.h"

namespace fovea {

struct EmbedderTraining {
  std::string model;  // a directory to start from, as Embedder::open() takes it
  std::string out;    // becomes a sentence-transformers directory; training state lives in it too
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
  int64_t evaluate_every = 0;  // steps; 0 = only before the first and after the last step
  int64_t save_every = 500;    // steps between snapshots; 0 = only at the end
  int64_t keep = 2;            // snapshots kept
  // Evaluations without improvement after which the run stops; `out` then holds the best weights.
  // 0 = never: `out` holds the newest weights.
  int64_t patience = 0;
  uint64_t seed = 1337;
  bool allow_change = false;  // resume although data or options differ from the snapshot's
};

// The plan alone; reads the data, checks every option, writes nothing. Throws as train_embedder().
TrainPlan plan_embedder_training(const EmbedderTraining& training);

// Trains the Transformer of an embedder; Dense layers stay as they are. Resumes where training.out
// holds a snapshot of the same run. `planned` receives the plan before the first step and returns
// false to stop there; `progress` is called after every step and returns false to save and stop.
// The figure "spearman", in percent, is measured on training.validation.
// Throws InvalidArgument if an option is out of range or differs from that of the run to resume,
// BadFile if an example is malformed, OutOfMemory if the plan needs more than there is, and Failed
// if the loss is not finite.
TrainResult train_embedder(const EmbedderTraining& training,
                           const std::function<bool(const TrainPlan&)>& planned = {},
                           const std::function<bool(const TrainProgress&)>& progress = {});

}  // namespace fovea
