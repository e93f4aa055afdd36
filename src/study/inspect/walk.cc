// The intermediate results for one token, step by step, computed by the layers of the blocks on one
// row. The results have the same bits as in the run, since the bits of a row do not depend on other
// rows.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "inspect/inspection.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"
#include "transformer/token_vectors.h"

namespace fovea::study {
namespace {

using What = model::ProbePoint::What;

constexpr int64_t kLikeliest = 10;  // number of tokens in the steps with logits and probabilities

class Steps {
 public:
  explicit Steps(int64_t values) : most_(values) {}

  // Adds a step; `all`: all values of the token at this step.
  WalkStep& add(const char* name, std::vector<int64_t> shape, const std::vector<float>& all) {
    WalkStep& step = steps_.emplace_back();
    step.name = name;
    step.shape = std::move(shape);
    step.size = std::ssize(all);
    step.values.assign(all.begin(), all.begin() + std::min(most_, step.size));
    double squares = 0;
    for (const float x : all) squares += double{x} * double{x};
    step.root_mean_square =
        all.empty() ? 0 : static_cast<float>(std::sqrt(squares / static_cast<double>(all.size())));
    return step;
  }
  WalkStep& add(const char* name, std::vector<int64_t> shape, const Tensor& row) {
    return add(name, std::move(shape), to_floats(row));
  }
  std::vector<WalkStep> take() { return std::move(steps_); }
  int64_t most() const { return most_; }

 private:
  int64_t most_;
  std::vector<WalkStep> steps_;
};

// Returns the part of one head.   row [1, 1, H D] -> [D]
std::vector<float> head_of(const Tensor& row, int64_t head, int64_t width) {
  const std::vector<float> all = to_floats(row);
  return {all.begin() + head * width, all.begin() + (head + 1) * width};
}

// The names of the steps of a sublayer: its output, the norm of its output, and the residual
// stream.
struct SublayerSteps {
  const char *output, *output_norm, *stream;
};

// Adds the steps from the output of a sublayer to the residual stream after it. `unnormed` is empty
// if the output has no norm.
void join(Steps& steps, const SublayerSteps& names, const std::vector<int64_t>& shape,
          const Tensor& unnormed, const Tensor& output, const Tensor& stream) {
  steps.add(names.output, shape, unnormed ? unnormed : output);
  if (unnormed) steps.add(names.output_norm, shape, output);
  steps.add(names.stream, shape, stream);
}

// Adds the steps from the queries, keys and values to the outputs of the heads.
void attend_step(Steps& steps, const Inspection::State& all, model::AttentionKind kind,
                 const WalkQuery& query) {
  const bool cross = kind == model::AttentionKind::cross;
  const AttentionMap& here = all.attended(kind, query.layer);
  const int64_t T = here.q.dim(1), H = here.q.dim(2), D = here.q.dim(3), S = here.k.dim(1),
                G = here.k.dim(2), t = query.token, group = query.head / (H / G),
                value_width = here.v.dim(3);
  const auto name = [cross](const char* self, const char* other) { return cross ? other : self; };
  steps.add(name("query", "cross_query"), {T, H, D}, head_of(row_of(here.q, t), query.head, D));
  if (!cross) {
    steps.add("key", {S, G, D}, head_of(row_of(here.k, t), group, D));
    steps.add("value", {S, G, value_width}, head_of(row_of(here.v, t), group, value_width));
  }
  const Tensor row_weights = all.weights(kind, query.layer, query.head, {t, t + 1});
  const Tensor row_scores = all.scores(kind, query.layer, query.head, {t, t + 1});
  std::vector<int32_t> keys;  // the keys that the query sees
  Interval seen[Mask::kMostIntervals];
  Mask mask = here.options.mask;
  const int parts = mask.intervals(0, t, S, seen);
  for (int i = 0; i < parts; ++i)
    for (int64_t s = seen[i].begin; s < seen[i].end; ++s) keys.push_back(static_cast<int32_t>(s));
  std::vector<float> weights, scores;
  const HostValues<float> all_weights(row_weights), all_scores(row_scores);
  for (const int32_t s : keys) {
    weights.push_back(all_weights[s]);
    scores.push_back(all_scores[s]);
  }
  // If there are many keys, only the strongest are listed, in ascending order.
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(2 * steps.most())));
  std::sort(order.begin(), order.end());
  const auto add_strongest = [&](WalkStep& step, const std::vector<float>& values) {
    step.values.clear();
    for (const size_t i : order) {
      step.values.push_back(values[i]);
      step.ids.push_back(keys[i]);
    }
  };
  add_strongest(steps.add(name("scores", "cross_scores"), {H, T, S}, scores), scores);
  add_strongest(steps.add(name("weights", "cross_weights"), {H, T, S}, weights), weights);
  steps.add(name("sum", "cross_sum"), {T, H, value_width},
            head_of(row_of(here.heads, t), query.head, value_width));
}

// Adds the steps of a recurrent layer: the two parts of the gates and the state h.
void recurrence_step(Steps& steps, const model::Recurrence& layer, const LayerValues& values,
                     int64_t tokens, int64_t t) {
  const Tensor gates = values.row(What::gates, t);  // [1, 1, G]
  const Tensor before = t == 0 ? zeros({1, layer.width}) : values.row(What::state, t - 1);
  const int64_t G = gates.dim(2);
  steps.add("gates_input", {tokens, G}, gates);
  steps.add("gates_recurrent", {tokens, G},
            layer.recurrent_part(before.view({1, layer.width}), DType::f32));
  steps.add("state", {tokens, layer.width}, values.row(What::state, t));
}

void experts_step(Steps& steps, const model::FeedForward& ffn, const Tensor& x, int64_t tokens) {
  const Tensor row = x.view({1, x.dim(2)});
  const Tensor logits = ffn.router_logits(row);
  steps.add("router", {tokens, ffn.spec.count}, ffn.router_scores(logits));
  const Routing routing = ffn.routing(logits);
  WalkStep& step = steps.add("experts", {tokens, ffn.spec.chosen}, routing.weights);
  step.values = to_floats(routing.weights);
  const HostValues<int32_t> chosen(routing.experts);
  step.ids.assign(chosen.begin(), chosen.end());
  if (ffn.has_shared()) steps.add("shared_experts", {tokens, x.dim(2)}, ffn.shared_output(row));
}

// `hidden`: the hidden layer, without the muted neurons.
void ffn_step(Steps& steps, const model::FeedForward& ffn, const Tensor& x, const Tensor& hidden,
              int64_t tokens) {
  if (!ffn.experts.empty()) return experts_step(steps, ffn, x, tokens);
  const Tensor up = ffn.up(x);
  const std::vector<int64_t> wide{tokens, up.dim(2)};
  if (ffn.gated) steps.add("ffn_gate", wide, activation(ffn.gate(x), ffn.kind));
  steps.add("ffn_up", wide, up);
  steps.add(ffn.gated ? "ffn_product" : "ffn_activation", wide, hidden);
}

Tensor normed(Steps& steps, const model::Norm& norm, const Tensor& x, const char* name,
              const std::vector<int64_t>& shape) {
  const Tensor y = norm(x, DType::f32);
  if (norm.present()) steps.add(name, shape, y);
  return y;
}

void layer_steps(Steps& steps, const Inspection::State& all, const WalkQuery& query) {
  const StackRun& run = all.run(query.kind);
  const auto l = static_cast<size_t>(query.layer);
  const auto held = run.stack->block(query.layer);
  const model::Block& block = *held;
  const LayerValues& values = all.values(query.kind, query.layer);
  const auto row = [&](What what, bool cross = false) {
    return values.row(what, query.token, cross);
  };
  const std::vector<int64_t> shape{run.tokens(), all.model.spec.width};
  const Tensor x = row_of(run.stream[l], query.token),
               next = row_of(run.stream[l + 1], query.token);
  steps.add("stream", shape, x);
  const auto* recurrence = block.mixer_as<model::Recurrence>();
  const bool attends = block.attends();
  normed(steps, block.attention_norm.input, x, attends ? "attention_norm" : "recurrence_norm",
         shape);
  if (const Tensor c = row(What::latent)) steps.add("latent", {run.tokens(), c.dim(2)}, c);
  if (recurrence != nullptr)
    recurrence_step(steps, *recurrence, values, run.tokens(), query.token);
  else if (attends)
    attend_step(steps, all, query.kind, query);
  const SublayerSteps mixer =
      attends ? SublayerSteps{"attention_output", "attention_output_norm", "attention_stream"}
              : SublayerSteps{"recurrence_output", "recurrence_output_norm", "recurrence_stream"};
  if (block.parallel) {
    steps.add(mixer.output, shape, row(What::mixer_output));
    const Tensor y = normed(steps, block.ffn_input_norm(), x, "ffn_norm", shape);
    ffn_step(steps, *block.ffn, y, row(What::mlp_hidden), run.tokens());
    steps.add("ffn_output", shape, row(What::mlp_output));
    steps.add("ffn_stream", shape, next);
    return;
  }
  join(steps, mixer, shape, row(What::mixer_unnormed), row(What::mixer_output),
       row(What::hidden_mid));
  Tensor h = row(What::hidden_mid);
  if (block.cross) {
    normed(steps, block.cross_norm.input, h, "cross_norm", shape);
    attend_step(steps, all, model::AttentionKind::cross, query);
    h = row(What::hidden_mid, true);
    join(steps, {"cross_output", "cross_output_norm", "cross_stream"}, shape,
         row(What::mixer_unnormed, true), row(What::mixer_output, true), h);
  }
  if (!block.ffn) return;
  const Tensor y = normed(steps, block.ffn_norm.input, h, "ffn_norm", shape);
  ffn_step(steps, *block.ffn, y, row(What::mlp_hidden), run.tokens());
  join(steps, {"ffn_output", "ffn_output_norm", "ffn_stream"}, shape, row(What::mlp_unnormed),
       row(What::mlp_output), next);
}

void embedding_steps(Steps& steps, const Inspection::State& all, const WalkQuery& query) {
  const model::Transformer& model = all.model;
  const StackRun& run = all.run(query.kind);
  const int64_t T = run.tokens(), C = model::embedding_width_of(model.spec);
  const int32_t own = run.ids[static_cast<size_t>(query.token)];
  const Tensor id = full({1, 1}, own, DType::i32);
  const bool source = run.stack == &model.encoder && model.source_embedding.present();
  const model::Parameter& table = source ? model.source_embedding : model.token_embedding;
  const Tensor x = model::token_vectors(model, id, table);
  WalkStep& step = steps.add("embedding", {table.shape[0], C}, x);
  step.ids = {own};
  Tensor sum = x;
  const auto add_part = [&](const char* name, std::vector<int64_t> shape, const Tensor& part) {
    steps.add(name, std::move(shape), part);
    sum = add(sum, part);
  };
  if (model.type_embedding.present())
    add_part("type", {model.spec.token_types, C},
             embedding(zeros({1, 1}, DType::i32), model.type_embedding.value));
  const bool before = run.stack->norm_before_positions;
  if (before)
    steps.add("embedding_norm", {T, C}, sum = run.stack->embedding_norm(sum, sum.dtype()));
  const model::Positions& positions = run.stack->positions;
  const model::PositionKind kind = positions.spec.kind;
  if (kind == model::PositionKind::learned || kind == model::PositionKind::sinusoidal) {
    const Tensor position = full({1, 1}, static_cast<double>(query.token), DType::i32);
    add_part("position", {T, C}, positions.add_to(zeros({1, 1, C}), position));
  }
  const Tensor row = row_of(run.stream[0], query.token);
  const bool projects = run.stack->projection.weight.present();
  if (run.stack->embedding_norm.present() && !before)
    steps.add("embedding_norm", {T, C},
              projects ? run.stack->embedding_norm(sum, sum.dtype()) : row);
  if (projects) steps.add("projection", {T, model.spec.width}, row);
}

void output_steps(Steps& steps, const Inspection::State& all, const WalkQuery& query) {
  const StackRun& run = all.run(query.kind);
  const std::vector<int64_t> shape{run.tokens(), all.model.spec.width};
  const Tensor row = row_of(run.output, query.token);
  steps.add("final_stream", shape, row_of(run.stream.back(), query.token));
  if (run.stack->norm.present()) steps.add("final_norm", shape, row);
  if (query.kind != model::AttentionKind::self ||
      all.model.spec.head.kind != model::HeadKind::language_model)
    return;
  const std::vector<float> z = to_floats(all.logits_of(row.view({1, row.dim(2)})));
  const std::vector<float> p = to_floats(softmax(tensor_of(z, {1, std::ssize(z)})));
  std::vector<int32_t> order(z.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = std::min<int64_t>(kLikeliest, std::ssize(order));
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), [&](int32_t a, int32_t b) {
    const float x = z[static_cast<size_t>(a)], y = z[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  order.resize(static_cast<size_t>(kept));
  for (const auto& [name, values] : {std::pair("logits", &z), {"probabilities", &p}}) {
    WalkStep& step = steps.add(name, {run.tokens(), std::ssize(z)}, *values);
    step.values.clear();
    for (const int32_t i : order) step.values.push_back((*values)[static_cast<size_t>(i)]);
    step.ids = order;
  }
}

}  // namespace

std::vector<WalkStep> Inspection::walk(const WalkQuery& query) const {
  const InspectionCall state(*state_);
  const NoGradient off;
  state->check_text("walk");
  check(query.kind != model::AttentionKind::cross, "look: cross; expected self or encoder");
  const StackRun& run = state->run(query.kind);
  state->check_layer(query.kind, query.layer);
  check(query.token >= 0 && query.token < run.tokens(), "token {}; expected 0 to {}", query.token,
        run.tokens() - 1);
  Inspection::State::check_head(query.head, state->stack_spec(query.kind).attention.heads);
  Steps steps(std::max<int64_t>(query.values, 1));
  embedding_steps(steps, *state, query);
  layer_steps(steps, *state, query);
  output_steps(steps, *state, query);
  return steps.take();
}

std::vector<std::vector<Routed>> Inspection::routing(model::AttentionKind kind,
                                                     int64_t layer) const {
  const InspectionCall state(*state_);
  const NoGradient off;
  state->check_layer(kind, layer);
  const StackRun& run = state->run(kind);
  const auto block = run.stack->block(layer);
  std::vector<std::vector<Routed>> all;
  if (!block->ffn || block->ffn->experts.empty()) return all;
  for (int64_t t = 0; t < run.tokens(); ++t) {
    Steps steps(1);
    layer_steps(steps, *state, {kind, t, layer, 0, 1});
    for (const WalkStep& step : steps.take()) {
      if (step.name != "experts") continue;
      std::vector<Routed>& chosen = all.emplace_back();
      for (size_t i = 0; i < step.ids.size(); ++i) chosen.push_back({step.ids[i], step.values[i]});
    }
  }
  return all;
}

}  // namespace fovea::study
