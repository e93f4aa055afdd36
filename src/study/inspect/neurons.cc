// Neurons of feed-forward layers, and the tokens that they promote (Geva et al. 2021).

#include <cmath>

#include "base/error.h"
#include "base/fields.h"
#include "inspect/frozen_norm.h"
#include "inspect/layer_rows.h"
#include "inspect/top_tokens.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::study {
namespace {

constexpr int64_t kPromoted = 6;      // tokens listed for a neuron
constexpr int64_t kMostNeurons = 64;  // of a layer: 64 rows of logits

// Returns the neurons with the largest absolute activations.
std::vector<Neuron> strongest_of(const std::vector<float>& hidden, int64_t count) {
  std::vector<float> sizes;
  for (const float each : hidden) sizes.push_back(std::abs(each));
  std::vector<Neuron> neurons;
  for (const TokenValue& top : top_tokens(sizes, count))
    neurons.push_back({top.id, hidden[static_cast<size_t>(top.id)], {}});
  return neurons;
}

// Sets the tokens that each neuron of a layer promotes.
void find_promoted(const Inspection::State& all, const StackRun& run, const model::Block& block,
                   const LayerRows& rows, int64_t token, std::vector<Neuron>& neurons) {
  const int64_t N = std::ssize(neurons), F = rows.hidden.size(), C = run.output.dim(2);
  // Row n has the activation of neuron n, and 0 elsewhere.
  const Tensor alone = tensor_from<float>({1, N, F}, [&](int64_t i) {
    const Neuron& neuron = neurons[static_cast<size_t>(i / F)];
    return i % F == neuron.neuron ? neuron.activation : 0;
  });
  const FrozenNorm output(block.ffn_norm.output, to_floats(rows.fed)),
      last(run.stack->norm, to_floats(row_of(run.stream.back(), token)));
  std::vector<float> written;
  for (std::vector<double>& row : product_rows(block, block.ffn->down, alone, block.ffn_scale)) {
    std::vector<double> p = output.of(std::move(row));
    if (rows.fed_sum) p = FrozenNorm(block.ffn_norm.sum, to_floats(rows.fed_sum)).of(std::move(p));
    p = last.of(std::move(p));
    written.insert(written.end(), p.begin(), p.end());
  }
  written.resize(static_cast<size_t>((N + 1) * C));  // the last row gives the head's output for 0
  const auto raised = raised_tokens(all.logits_of(tensor_of(written, {N + 1, C})), kPromoted);
  for (size_t i = 0; i < neurons.size(); ++i) neurons[i].promoted = raised[i];
}

}  // namespace

std::vector<std::vector<Neuron>> strongest_neurons(const Inspection& inspection,
                                                   model::AttentionKind kind, int64_t token,
                                                   int64_t count) {
  const InspectionCall state(inspection.state());
  const NoGradient off;
  check_field(kind != model::AttentionKind::cross, "look", "cross; expected self or encoder");
  const StackRun& run = state->run(kind);
  check_field(token >= 0 && token < run.tokens(), "token", "{}; expected 0 to {}", token,
              run.tokens() - 1);
  check_field(count >= 1 && count <= kMostNeurons, "count", "{}; expected 1 to {}", count,
              kMostNeurons);
  const bool words =
      state->model.spec.head.kind == model::HeadKind::language_model && &run == &state->main;
  std::vector<std::vector<Neuron>> layers;
  for (int64_t l = 0; l < run.stack->layers; ++l) {
    std::vector<Neuron>& neurons = layers.emplace_back();
    const auto block = run.stack->block(l);
    if (!block->ffn || !block->ffn->up.weight.present()) continue;
    const LayerRows rows = layer_rows(*state, kind, l, token);
    neurons = strongest_of(to_floats(rows.hidden), count);
    if (words) find_promoted(*state, run, *block, rows, token, neurons);
  }
  return layers;
}

}  // namespace fovea::study
