#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/model/model.h"
#include "fovea/model/spec.h"
#include "fovea/train/train.h"

namespace fovea::train {

// The cost of a model and of its training, computed from the Spec. No weights are created, so
// models of any size can be planned instantly. All functions are safe to call from any thread.

// One component of a model, such as its attention. The parameters of a shared matrix count in the
// first component that uses it.
struct PlanPart {
  std::string name;
  int64_t parameters = 0;
  int64_t active = 0;  // parameters used per token: only the chosen experts count
  double flops = 0;    // FLOPs of the matrix products in one forward pass over one sequence
};

struct PlanOptions {
  int64_t batch = 1;
  int64_t length = 0;  // tokens per sequence; 0 = the model's context
  // Tokens per encoder input of an encoder-decoder; 0 = the encoder's maximum.
  int64_t source_length = 0;
  int64_t recompute = 0;  // training as with these fields of TrainOptions
  OptimizerKind optimizer = OptimizerKind::adamw;
  MomentPrecision moments = MomentPrecision::fp32;
  double tokens = 0;       // training tokens; 0 = the compute-optimal number, 20 per parameter
  double speed = 0;        // peak FLOP/s of one device; 0 = unknown, then time and cost are 0
  double utilisation = 1;  // fraction of the peak speed that training reaches
  double price = 0;        // of one device-hour
  int64_t devices = 1;
  // Of plan_hosts(): the largest number of hosts; bits per second that each can send, 0 = no limit;
  // and milliseconds from one to another.
  int64_t hosts = 1;
  double network = 0, latency = 0;
};
void visit(PlanOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

struct AttentionShare {
  int64_t length = 0;
  // Fraction of the forward FLOPs in products of queries with keys and of weights with values.
  double share = 0;
};

// Bytes with elements of 32, 16, 8 and 4 bits. Scales of int8 and int4 are excluded.
struct Bytes {
  double fp32 = 0, bf16 = 0, int8 = 0, int4 = 0;
};

struct MemoryPlan {
  Bytes weights;
  double gradients = 0, moments = 0;  // bytes; gradients are fp32
  Bytes activations;                  // of a training step on the batch, in fp32 and bf16
  // The key-value cache: per additional token of a short text, and for the whole batch at full
  // length. In `cache`, layers with a window and recurrent layers have as many pages as generation
  // allocates for texts of any length.
  Bytes cache_per_token, cache;
};

struct TrainingPlan {
  double tokens = 0;
  // FLOPs of the matrix products; the backward pass costs twice as much as the forward pass.
  double flops = 0;
  double rule_flops = 0;  // 6 N D (Kaplan et al. 2020), N = active parameters, D = tokens
  // For `flops`; 0 if the speed is unknown. If the price is 0, the cost is 0.
  double seconds = 0, device_hours = 0, cost = 0;
  double optimal_tokens = 0;  // for this model size (Hoffmann et al. 2022)
  // Predicted by the fit of Hoffmann et al. 2022, in nats per token; 0 if there is an encoder.
  double loss = 0;
};

struct Plan {
  int64_t parameters = 0, active = 0;
  std::vector<PlanPart> parts;  // only components that the model has
  int64_t batch = 0;
  // The planned lengths; source_length = 0 unless there are two stacks.
  int64_t length = 0, source_length = 0;
  // FLOPs of one forward pass over one sequence; training costs three times as much.
  double flops = 0;
  double flops_per_token = 0;  // `flops` / tokens of the sequence, source tokens included
  std::vector<AttentionShare> attention;  // at lengths 256, 1024, ... and at the model's context
  MemoryPlan memory;
  TrainingPlan training;
};

// Returns the plan of a model. Throws InvalidArgument, naming the field or option, if the Spec is
// invalid or an option is out of range.
Plan plan(const model::Spec& spec, const PlanOptions& options = {});

// The memory of a process that runs a model, in bytes: what Linux counts as RssAnon and
// RssFile. Of a token embedding that is not also the head's matrix, few rows are read from the
// file.
struct InferenceMemory {
  std::vector<model::FormatBytes> formats;  // of the weights, largest first; empty = no weights
  double weights = 0, cache = 0;
  double program = 0;  // code, libraries, tokenizer, activations
  double total() const { return weights + cache + program; }
};

// Returns the memory for a model directory or a .gguf file that is opened with this precision, and
// for `options.batch` texts of `options.length` tokens. Reads only the config and the headers of
// the weights.
InferenceMemory inference_memory(const std::string& path, const PlanOptions& options = {},
                                 model::WeightPrecision precision = model::WeightPrecision::stored);

// Returns 6 N D for N parameters and D tokens.
double rule_flops(double parameters, double tokens);

// Return the loss in nats per token by the scaling laws of Kaplan et al. 2020, equations 1.1, 1.2
// and 1.5: limited by the parameters (without embeddings), by the tokens, or by both.
double kaplan_loss_of_size(double parameters);
double kaplan_loss_of_data(double tokens);
double kaplan_loss(double parameters, double tokens);
// Return the loss E + A / N^alpha + B / D^beta, with the constants of the third approach of
// Hoffmann et al. 2022, and the compute-optimal numbers by their rule of thumb of 20 tokens per
// parameter.
double chinchilla_loss(double parameters, double tokens);
double optimal_tokens(double parameters);
double optimal_parameters(double flops);  // where 6 N D = flops and D = 20 N

// What to train for a number of FLOPs, without any data: 6 N D = flops.
struct BudgetPlan {
  double flops = 0;
  // N and D of 20 tokens per parameter, and the loss by chinchilla_loss().
  double parameters = 0, tokens = 0, loss = 0;
  // Where chinchilla_loss() is least (Hoffmann et al. 2022, eq. 4). The published constants lead to
  // more tokens per parameter than their rule of thumb (Besiroglu et al. 2024).
  double fitted_parameters = 0, fitted_tokens = 0, fitted_loss = 0;
  // A decoder of about `parameters`, without embeddings: 12 layers * width^2, with 64 times as much
  // width as layers.
  int64_t layers = 0, width = 0;
};
// Throws InvalidArgument if `flops` is not above 0.
BudgetPlan plan_budget(double flops);
// Returns the FLOPs of some hours with `speed`, `utilisation` and `devices` of the options. If the
// speed is 0, this machine's is measured, in fp32.
double flops_of_hours(double hours, const PlanOptions& options = {});

// Returns the number of query-key pairs in self-attention over `length` tokens. window: number of
// keys that a query sees in each direction, including its own; 0 = all. global: number of first
// tokens that see, and are seen by, all tokens.
int64_t attention_pairs(int64_t length, bool causal, int64_t window = 0, int64_t global = 0);

// A step of a training that several hosts share.
struct HostsStep {
  int64_t hosts = 1;
  double compute_seconds = 0;   // of its share, without waiting
  double exchange_seconds = 0;  // of the exchange of gradients alone
  double wait_seconds = 0;      // for what the backward pass does not hide of it, and for agreement
  double bytes_sent = 0;        // by each host
  double seconds() const { return compute_seconds + wait_seconds; }
};
// Returns the steps on 1 to options.hosts hosts, of the planned batch together. The time on one
// host follows from options.speed and options.utilisation; without a speed, that of this machine is
// measured.
std::vector<HostsStep> plan_hosts(const Plan& plan, const PlanOptions& options);

}  // namespace fovea::train
