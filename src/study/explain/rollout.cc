#include "explain/rollout.h"

#include <map>

#include "base/fields.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::study {
namespace {

using StackName = model::ProbePoint::Stack;

// The mean over the heads of the attention weights of each layer, [T, S], by stack and layer.
using LayerWeights = std::map<std::pair<StackName, int64_t>, std::vector<double>>;

// weights [1, H, T, S] -> [T, S]
std::vector<double> mean_of_heads(const Tensor& weights) {
  const int64_t H = weights.dim(1), cells = weights.dim(2) * weights.dim(3);
  std::vector<double> mean(static_cast<size_t>(cells), 0.0);
  const HostValues<float> all(weights);
  for (int64_t h = 0; h < H; ++h)
    for (int64_t i = 0; i < cells; ++i) mean[static_cast<size_t>(i)] += double{all[h * cells + i]};
  for (double& weight : mean) weight /= static_cast<double>(H);
  return mean;
}

LayerWeights weights_of(const ExplainedOutput& output, const ExplainedText& text) {
  LayerWeights found;
  const auto is_attention = [](const model::ProbePoint& point) {
    return point.what == model::ProbePoint::What::attention;
  };
  const model::Probe probe{.see =
                               [&](const model::ProbePoint& point, const Tensor& value) {
                                 if (is_attention(point))
                                   found[{point.stack, point.layer}] = mean_of_heads(value);
                               },
                           .wants_weights = is_attention};
  const NoGradient off;
  output.values(output_batch(text), &probe);
  return found;
}

// Adds 0.5 r W to `keys`, where W [T, S] are attention weights, and leaves 0.5 r in `rows`.
void pass_half(std::vector<double>& rows, const std::vector<double>& weights,
               std::vector<double>& keys) {
  const size_t S = keys.size();
  for (size_t t = 0; t < rows.size(); ++t) {
    rows[t] /= 2;
    for (size_t s = 0; s < S; ++s) keys[s] += rows[t] * weights[t * S + s];
  }
}

// Replaces r by r (0.5 A + 0.5 I).
void through_layer(std::vector<double>& rows, const std::vector<double>& weights) {
  std::vector<double> keys(rows.size(), 0.0);
  pass_half(rows, weights, keys);
  for (size_t t = 0; t < rows.size(); ++t) rows[t] += keys[t];
}

const model::Stack& main_stack(const model::Transformer& model) {
  return model.spec.decoder ? model.decoder : model.encoder;
}

int64_t first_without_weights(const model::Transformer& model) {
  const model::Stack& stack = main_stack(model);  // recurrent layers are in decoders only
  for (size_t i = 0; i < stack.blocks.size(); ++i)
    if (!stack.blocks[i].attends()) return static_cast<int64_t>(i);
  return -1;
}

}  // namespace

bool has_rollout(const model::Transformer& model) { return first_without_weights(model) < 0; }

void check_rollout(const model::Transformer& model) {
  if (const int64_t layer = first_without_weights(model); layer >= 0)
    fail_field(ErrorKind::Unsupported, "method",
               "rollout: layer {} is recurrent and has no attention weights; expected "
               "gradient_input or integrated_gradients",
               layer);
}

// Multiplies from the last layer to the first, so that each step is a row times a matrix.
std::vector<double> rollout(const ExplainedOutput& output, const ExplainedText& text) {
  const model::Transformer& model = *output.model;
  check_rollout(model);
  const LayerWeights weights = weights_of(output, text);
  const bool both = model.spec.encoder && model.spec.decoder;
  const auto T = static_cast<size_t>(text.length());
  std::vector<double> rows = output.reads(text.length()), source(T, 0.0);
  for (int64_t layer = main_stack(model).layers; layer-- > 0;) {
    if (both) pass_half(rows, weights.at({StackName::cross, layer}), source);
    through_layer(rows, weights.at({both ? StackName::decoder : StackName::only, layer}));
  }
  if (!both) return rows;
  for (int64_t layer = model.encoder.layers; layer-- > 0;)
    through_layer(source, weights.at({StackName::encoder, layer}));
  for (size_t t = 0; t + 1 < T; ++t) source[t] += rows[t + 1];  // moved by one position
  return source;
}

}  // namespace fovea::study
