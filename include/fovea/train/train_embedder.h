#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/train/train.h"

namespace fovea::train {

// Weights of the pooling that are trained, besides those of the Transformer. layers: the weights of
// a mean over all layers, from the embeddings to the last (Peters et al. 2018, eq. 1). tokens: a
// vector v, so that token t has the weight softmax(v . h_t).
enum class LearnedPooling { none, layers, tokens };

// The objective of an embedder. The definitions, with their papers, are in docs/embed.md and equal
// those of sentence-transformers: MultipleNegativesRankingLoss, CosineSimilarityLoss, CoSENTLoss,
// AnglELoss, TripletLoss, MarginMSELoss, DistillKLDivLoss and GISTEmbedLoss. automatic: cosine for
// scored pairs, else ranking. Other kinds of models have ranking, margin_mse and kl (not of
// cross-encoders), and of tokens scaled_kl, PyLate's Distillation; of cross-encoders mse, list_net
// and lambda: MSELoss, ListNetLoss and LambdaLoss.
enum class EmbeddingLoss {
  automatic,
  ranking,
  cosine,
  cosent,
  angle,
  triplet,
  margin_mse,
  kl,
  gist,
  scaled_kl,
  mse,
  list_net,
  lambda
};

// What a run trains. automatic: what the directory holds. dense: a vector for each text. sparse: a
// sparse vector, by a masked language model (SPLADE). tokens: a vector for each token (ColBERT), by
// a new projection if the model has none. scores: a score for a query and a document (a
// cross-encoder), by a new head if the model has none.
enum class TrainedKind { automatic, dense, sparse, tokens, scores };
// What keeps sparse vectors sparse: the squared means of the elements over the texts (Paria et al.
// 2020), or the sums of the elements.
enum class Regulariser { flops, l1 };

struct EmbedderTraining {
  // Initial model: a directory that Embedder, SparseEmbedder, MultiVectorEmbedder or Reranker
  // opens.
  std::string model;
  std::string out;  // output: a sentence-transformers directory, with the training state
  // File of training examples (CSV, TSV, JSON lines or Parquet): pairs of related texts, triplets
  // (with one or more unrelated texts, and the scores of a teacher for the losses margin_mse and
  // kl) or scored pairs.
  std::string data;
  std::string validation;  // file of scored pairs, for Spearman's correlation; empty = none

  int64_t epochs = 1;
  int64_t batch = 64;  // examples per step; the memory of activations does not depend on it
  double learning_rate = 2e-5;
  double warmup = 0.1;         // fraction of the steps in which the learning rate rises
  double weight_decay = 0.01;  // applies to matrices and token embeddings only
  MomentPrecision moments = MomentPrecision::fp32;
  EmbeddingLoss loss = EmbeddingLoss::automatic;
  // ranking, cosent, angle, kl, gist: divides the similarities. 0 = the default of the loss: 0.05,
  // of kl 1, of gist 0.01.
  double temperature = 0;
  TrainedKind kind = TrainedKind::automatic;
  // sparse: the weights of the regulariser of queries (anchors) and of documents, which rise with
  // the square of the step over the first third of the run.
  double query_weight = 5e-5, document_weight = 3e-5;
  Regulariser regulariser = Regulariser::flops;
  int64_t token_width = 128;  // tokens: the elements of a vector, by a new projection
  // triplet: how much farther than the positive a negative should be; unset = 5. gist: negatives
  // whose similarity by the guide exceeds that of the positive less this margin are left out; unset
  // = 0.
  std::optional<double> margin;
  std::optional<double> relative_margin;  // gist: the margin as a share of that similarity
  std::string guide;  // gist: the directory of an embedder that tells false negatives
  // Also train vectors truncated to each of these widths (Kusupati et al. 2022).
  std::vector<int64_t> dimensions;
  // The weights are equal at first, unless the model has learned ones already.
  LearnedPooling learn_pooling = LearnedPooling::none;
  // Steps between evaluations; 0 = only before the first and after the last step.
  int64_t evaluate_every = 0;
  int64_t save_every = 500;  // steps between snapshots; 0 = only at the end
  int64_t keep = 2;          // number of snapshots to keep
  // Stop after this many evaluations without improvement; 0 = never. With `validation`, `out`
  // contains the best weights, which may be those of the model before the first step.
  int64_t patience = 0;
  int64_t recompute = 0;  // see TrainOptions
  // Parameters of the Transformer that are not trained, as in TrainOptions.
  std::vector<std::string> freeze;
  AdapterOptions lora;  // trains adapters of the Transformer instead of all of its weights
  uint64_t seed = 1337;
  bool allow_change = false;         // resume even if data or options differ from the snapshot's
  Communicator* ranks = nullptr;     // as in TrainOptions
  Sharded shard = Sharded::nothing;  // what each of the ranks has its part of only
};
void visit(EmbedderTraining& training, OptionVisitor& visitor);  // fovea/core/options.h

// Returns the plan of a run. Reads the data and checks every option; writes nothing. Throws the
// errors of train_embedder().
TrainPlan plan_embedder_training(const EmbedderTraining& training);

// Trains the Transformer of an embedder; Dense layers stay unchanged, except those of a model of
// vectors of tokens. Resumes if training.out
// contains a snapshot of the same run. `planned` receives the plan before the first step; return
// false to stop. `progress` is called after every step; return false to save a snapshot and stop.
// The metric "spearman", in percent, is measured on training.validation. Throws InvalidArgument if
// an option is out of range or differs from that of the run to resume, BadFile if an example is
// malformed, OutOfMemory if the plan exceeds the memory, and Failed if another process uses
// training.out, or if the loss or a gradient is not finite. The callbacks are those of train().
TrainResult train_embedder(const EmbedderTraining& training,
                           const std::function<bool(const TrainPlan&)>& planned = {},
                           const std::function<bool(const TrainProgress&)>& progress = {},
                           const std::function<void(Pause, double seconds)>& pausing = {});

}  // namespace fovea::train
