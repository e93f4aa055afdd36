#include "inspect/layer_rows.h"

#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::study {

LayerRows layer_rows(const Inspection::State& all, model::AttentionKind kind, int64_t layer,
                     int64_t token) {
  using What = model::ProbePoint::What;
  const LayerValues& values = all.values(kind, layer);
  LayerRows rows;
  rows.heads = values.row(What::heads, token);
  rows.mixed = values.result(What::mixer_unnormed, What::mixer_output, token);
  rows.mixed_sum = values.row(What::mixer_sum, token);
  rows.cross = values.result(What::mixer_unnormed, What::mixer_output, token, true);
  rows.cross_sum = values.row(What::mixer_sum, token, true);
  rows.hidden = values.row(What::mlp_hidden, token);
  rows.fed = values.result(What::mlp_unnormed, What::mlp_output, token);
  rows.fed_sum = values.row(What::mlp_sum, token);
  return rows;
}

std::vector<std::vector<double>> product_rows(const model::Block& block, const model::Linear& layer,
                                              const Tensor& x, const model::Parameter& factors) {
  const NoGradient off;
  const int64_t R = x.dim(1), K = x.dim(2);
  const Tensor and_zero = zeros({1, R + 1, K});  // the last row gives the bias
  copy_elements(and_zero, 0, x, 0, R * K);
  const Tensor y = block.scaled(layer(and_zero), factors);
  const int64_t C = y.dim(2);
  const HostValues<float> values(y);
  std::vector<std::vector<double>> rows(static_cast<size_t>(R));
  for (int64_t r = 0; r < R; ++r)
    for (int64_t c = 0; c < C; ++c)
      rows[static_cast<size_t>(r)].push_back(double{values[r * C + c]} - double{values[R * C + c]});
  return rows;
}

}  // namespace fovea::study
