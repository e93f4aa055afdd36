#include "inspect/layer_rows.h"

#include <algorithm>

#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::study {

LayerRows layer_rows(const Inspection::State& all, model::AttentionKind kind, int64_t layer,
                     int64_t token) {
  const NoGradient off;
  const StackRun& run = all.run(kind);
  const model::Block& block = run.stack->blocks[static_cast<size_t>(layer)];
  const Tensor& stream = run.stream[static_cast<size_t>(layer)];
  const Tensor x = row_of(stream, token);
  LayerRows rows;
  const model::Probe probe = all.probe([&](const model::ProbePoint& point, Tensor& value) {
    if (point.what == model::ProbePoint::What::mlp_hidden) rows.hidden = value.detach();
  });
  model::LayerPass pass;
  pass.probe = &probe;
  pass.stack = run.pass.stack;
  const auto scaled = [](const Tensor& y, const model::Parameter& factors) {
    return factors.present() ? scale_columns(y, factors.value) : y;
  };
  if (block.mixer_as<model::Recurrence>() != nullptr) {
    rows.mixed = row_of(block.mix(block.attention_norm.input(stream, DType::f32), run.pass), token);
  } else {
    rows.heads = row_of(all.attended(kind, layer).heads, token);
    rows.mixed = scaled(block.mixer_output()(rows.heads), block.attention_scale);
  }
  if (block.parallel) {
    rows.fed = block.feed(block.ffn_norm.input(x, DType::f32), pass);
    return rows;
  }
  rows.mixed_sum = block.added(x, block.attention_norm.output(rows.mixed, DType::f32));
  Tensor h = block.attention_norm.sum(rows.mixed_sum, DType::f32);
  if (block.cross) {
    rows.cross =
        block.cross->output(row_of(all.attended(model::AttentionKind::cross, layer).heads, token));
    rows.cross_sum = block.added(h, block.cross_norm.output(rows.cross, DType::f32));
    h = block.cross_norm.sum(rows.cross_sum, DType::f32);
  }
  if (!block.ffn) return rows;
  rows.fed = block.feed(block.ffn_norm.input(h, DType::f32), pass);
  rows.fed_sum = block.added(h, block.ffn_norm.output(rows.fed, DType::f32));
  return rows;
}

std::vector<std::vector<double>> product_rows(const model::Linear& layer, const Tensor& x,
                                              const model::Parameter& factors) {
  const NoGradient off;
  const int64_t R = x.dim(1), K = x.dim(2);
  const Tensor and_zero = zeros({1, R + 1, K});  // the last row gives the bias
  copy_elements(and_zero, 0, x, 0, R * K);
  Tensor y = layer(and_zero);
  if (factors.present()) y = scale_columns(y, factors.value);
  const int64_t C = y.dim(2);
  const HostValues<float> values(y);
  std::vector<std::vector<double>> rows(static_cast<size_t>(R));
  for (int64_t r = 0; r < R; ++r)
    for (int64_t c = 0; c < C; ++c)
      rows[static_cast<size_t>(r)].push_back(double{values[r * C + c]} - double{values[R * C + c]});
  return rows;
}

}  // namespace fovea::study
