#include "fovea/train/plan.h"
#include "open/directory.h"

#include "base/fields.h"
#include "base/float_mode.h"
#include "open/model_parts.h"
#include "plan/memory.h"

namespace fovea::train {
namespace {

constexpr double kHour = 3600;

double sum_of_flops(const std::vector<PlanPart>& parts) {
  double flops = 0;
  for (const PlanPart& part : parts) flops += part.flops;
  return flops;
}

Bytes bytes_of(double numbers) { return {numbers * 4, numbers * 2, numbers, numbers / 2}; }

Bytes bytes_of(const Cached& cached) {
  Bytes bytes = bytes_of(cached.elements);
  for (double* each : {&bytes.fp32, &bytes.bf16, &bytes.int8, &bytes.int4}) *each += cached.states;
  return bytes;
}

// Returns the shares at lengths from 256 that grow by a factor of four, and at the model's context.
std::vector<AttentionShare> attention_shares(const model::Spec& s) {
  std::vector<AttentionShare> shares;
  const auto add = [&](int64_t length) {
    const bool text = s.input.kind == model::InputKind::tokens;
    const Lengths lengths = lengths_of(s, s.decoder || text ? length : 0, text ? length : 0);
    shares.push_back({length, score_flops(s, lengths) / sum_of_flops(parts_of(s, lengths))});
  };
  constexpr int64_t kFirst = 256;
  if (s.decoder || s.input.kind == model::InputKind::tokens)
    for (int64_t length = kFirst; length < s.context; length *= 4) add(length);
  add(s.context);
  return shares;
}

MemoryPlan memory_of(const model::Spec& s, const Plan& plan, const Lengths& lengths,
                     const PlanOptions& o) {
  const Savings savings = {.recompute = o.recompute,
                           .moments = {{.kind = o.optimizer}, o.moments == MomentPrecision::bits8}};
  MemoryPlan m;
  const auto parameters = static_cast<double>(plan.parameters);
  m.weights = bytes_of(parameters);
  m.gradients = 4 * parameters;
  m.moments = static_cast<double>(moment_bytes(s, savings.moments));
  m.activations.fp32 = activation_bytes(s, lengths, plan.batch, 4, savings);
  m.activations.bf16 = activation_bytes(s, lengths, plan.batch, 2, savings);
  m.cache_per_token = bytes_of(cached_per_token(s));
  m.cache = bytes_of(cached(s, lengths, plan.batch));
  return m;
}

TrainingPlan training_of(const model::Spec& s, const Plan& plan, const PlanOptions& o) {
  TrainingPlan t;
  const auto size = static_cast<double>(plan.active);
  t.optimal_tokens = optimal_tokens(size);
  t.tokens = o.tokens > 0 ? o.tokens : t.optimal_tokens;
  t.flops = 3 * plan.flops_per_token * t.tokens;
  t.rule_flops = rule_flops(size, t.tokens);
  if (o.speed > 0) {
    t.device_hours = t.flops / (o.speed * o.utilisation) / kHour;
    t.seconds = t.device_hours * kHour / static_cast<double>(o.devices);
    t.cost = t.device_hours * o.price;
  }
  if (s.decoder && !s.encoder) t.loss = chinchilla_loss(size, t.tokens);
  return t;
}

}  // namespace

void visit(PlanOptions& o, OptionVisitor& v) {
  constexpr int64_t kMost = 1'000'000'000, kMostLength = 1 << 24;
  v.integer({"batch", "sequences per batch"}, o.batch, 1, kMost);
  v.integer({"length", "tokens per sequence; 0 = the model's context"}, o.length, 0, kMostLength);
  v.integer({"source_length", "tokens of the encoder input of an encoder-decoder; 0 = the maximum"},
            o.source_length, 0, kMostLength);
  v.integer(
      {"recompute", "training computes the first N layers again in the backward pass; -1 = all"},
      o.recompute, -1, kMost);
  v.choice({"optimizer", "optimiser, which determines the memory of the moments"}, o.optimizer,
           {"adamw", "sgd", "lion", "adafactor", "muon"});
  v.choice({"moments", "adamw: memory of the moments: 8 bytes per parameter, or 2"}, o.moments,
           {"fp32", "8bit"});
  v.number({"tokens", "training tokens, such as 300B; 0 = 20 per parameter"}, o.tokens, 0, 1e30);
  v.number({"speed", "peak FLOP/s of one device, such as 28T; 0 = unknown"}, o.speed, 0, 1e30);
  v.number({"utilisation", "fraction of the peak speed that training reaches"}, o.utilisation,
           0.001, 1);
  v.integer({"devices", "number of devices that share the work"}, o.devices, 1, kMost);
  v.number({"price", "price of one device-hour, in any currency"}, o.price, 0, 1e9);
  v.integer({"hosts",
             "also plan the steps of a training that up to N hosts share; without a speed, that of "
             "this machine is measured"},
            o.hosts, 1, 256);
  v.number({"network", "bits per second that each host can send, such as 1G; 0 = no limit"},
           o.network, 0, 1e15);
  v.number({"latency", "milliseconds from one host to another"}, o.latency, 0, 1e5);
}

Plan plan(const model::Spec& given, const PlanOptions& options) {
  const FloatMode mode;
  check_fields(options);
  check_field(options.moments == MomentPrecision::fp32 || options.optimizer == OptimizerKind::adamw,
              "moments", "8bit with another `optimizer`; expected adamw, or moments of fp32");
  const model::Spec s = model::validated(given);
  const Lengths lengths = lengths_of(s, options.length, options.source_length);
  Plan plan;
  plan.parts = parts_of(s, lengths);
  for (const PlanPart& part : plan.parts) {
    plan.parameters += part.parameters;
    plan.active += part.active;
    plan.flops += part.flops;
  }
  plan.batch = options.batch;
  plan.source_length = lengths.source;
  plan.length = lengths.target;
  if (!s.decoder) std::swap(plan.length, plan.source_length);
  plan.flops_per_token = plan.flops / static_cast<double>(lengths.total());
  plan.attention = attention_shares(s);
  plan.memory = memory_of(s, plan, lengths, options);
  plan.training = training_of(s, plan, options);
  return plan;
}

InferenceMemory inference_memory(const std::string& path, const PlanOptions& options,
                                 model::WeightPrecision precision) {
  const FloatMode mode;
  check_fields(options);
  const model::Spec s = model::validated(model::read_model_spec(path));
  const Lengths lengths = lengths_of(s, options.length, options.source_length);
  const model::WeightSizes sizes = model::weight_sizes(path, model::packing_of(precision));
  InferenceMemory memory;
  memory.formats = model::largest_first(sizes.formats);
  memory.weights = static_cast<double>(sizes.in_memory());
  const bool all_fp32 = sizes.formats.size() == 1 && sizes.formats.contains("fp32");
  const Bytes cache = bytes_of(cached(s, lengths, options.batch));
  memory.cache = all_fp32 ? cache.fp32 : cache.bf16;
  constexpr double kToken = 400;      // of a tokenizer: measured for the text, the id and the merge
  constexpr double kParts = 8 << 20;  // of weights that are packed late, which do not round
  memory.program =
      program_bytes(s, lengths, options.batch) +
      (precision < model::WeightPrecision::int8 ? kParts : 0) +
      (model::comes_with_tokenizer(path) ? kToken * static_cast<double>(s.vocabulary) : 0);
  return memory;
}

}  // namespace fovea::train
