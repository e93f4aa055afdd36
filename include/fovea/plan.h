#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/spec.h"

namespace fovea {

// What a model and its training take, counted from its Spec: no weight is made, so a model of any
// size is answered at once.

// One part of a model, such as its attention. A matrix that two parts use is counted in the first.
struct Part {
  std::string name;
  int64_t parameters = 0;
  int64_t active = 0;  // those that one token meets: of experts, the chosen ones'
  double flops = 0;    // of the matrix products in one sequence forward
};

struct PlanOptions {
  int64_t batch = 1;
  int64_t length = 0;         // tokens in a sequence; 0 = the model's context
  int64_t source_length = 0;  // of an encoder before a decoder; 0 = as many as it reads at most
  double tokens = 0;          // to train on; 0 = the compute-optimal number
  double speed = 0;           // FLOP/s of one device; 0 = unknown, then time and cost are 0
  double utilisation = 1;     // share of that speed which training reaches
  double price = 0;           // of one device for an hour
  int64_t devices = 1;
};

struct AttentionShare {
  int64_t length = 0;
  double share = 0;  // of the forward FLOPs that are products of queries, keys and values
};

// Bytes, in numbers of 32, 16, 8 and 4 bits (without the scales that 8 and 4 bits come with).
struct Bytes {
  double fp32 = 0, bf16 = 0, int8 = 0, int4 = 0;
};

struct MemoryPlan {
  Bytes weights;
  double gradients = 0, moments = 0;  // AdamW keeps two moments; all fp32
  Bytes activations;                  // of a training step on the batch, in fp32 and bf16
  // Keys and values that generating keeps: for one token more, and for the whole batch at its full
  // length, where a layer with a window keeps no more than that.
  Bytes cache_per_token, cache;
};

struct TrainingPlan {
  double tokens = 0;
  double flops = 0;       // by the model's matrices: forward, and twice that backward
  double rule_flops = 0;  // 6 N D (Kaplan et al. 2020), N = active parameters, D = tokens
  double seconds = 0, device_hours = 0, cost = 0;  // of `flops`; 0 where speed or price is unknown
  double optimal_tokens = 0;                       // for this size (Hoffmann et al. 2022)
  double loss = 0;                                 // that their fit expects, nats a token
};

struct Plan {
  int64_t parameters = 0, active = 0;
  std::vector<Part> parts;  // those that the model has
  int64_t batch = 0;
  int64_t length = 0, source_length = 0;  // as counted; 0 = there is no such stack
  double flops = 0;            // of one sequence forward; training takes three times that
  double flops_per_token = 0;  // the same by each token of it, a source's ones included
  std::vector<AttentionShare> attention;
  MemoryPlan memory;
  TrainingPlan training;
};

// InvalidArgument names the option that is out of range.
Plan plan(const Spec& spec, const PlanOptions& options = {});

// The Spec that config.json in a model's directory describes; the weights need not be there.
Spec read_model_spec(const std::string& folder);

double rule_flops(double parameters, double tokens);  // 6 N D

// Scaling laws. Kaplan et al. 2020, equations 1.1, 1.2 and 1.5: loss in nats a token, limited by
// parameters (without embeddings) or by tokens.
double kaplan_loss_of_size(double parameters);
double kaplan_loss_of_data(double tokens);
double kaplan_loss(double parameters, double tokens);
// Hoffmann et al. 2022: E + A / N^alpha + B / D^beta as their third approach fits it, and their
// rule of thumb of 20 tokens a parameter.
double chinchilla_loss(double parameters, double tokens);
double optimal_tokens(double parameters);
double optimal_parameters(double flops);  // of the model that these train best by 6 N D

// Pairs of query and key in self-attention of `length` tokens. window: keys that a query sees,
// itself included, on each side that it sees; 0 = all. global: first tokens that all see and that
// see all.
int64_t attention_pairs(int64_t length, bool causal, int64_t window = 0, int64_t global = 0);

}  // namespace fovea
