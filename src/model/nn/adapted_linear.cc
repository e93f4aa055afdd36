#include "nn/adapted_linear.h"

#include <cmath>

#include "base/error.h"
#include "fovea/core/random.h"
#include "tensor/host_values.h"

namespace fovea::model {

const Tensor& product_bias(const Linear& layer) {
  static const Tensor none;
  return layer.adapter.scales() ? none : layer.bias.value;
}

namespace {

// Replaces those rows of `y`, the layer's product with x, by their outputs with an alternative.
void adapt_rows(const Linear& layer, const Tensor& y, const Tensor& x, const AdaptedRows& some,
                const Pass& pass) {
  const LowRankAdapter& one = layer.alternatives[some.adapter];
  if (!one.present()) return;
  const auto rows_of = [&](const Tensor& all) {
    return gather(some.rows, all.view({all.size() / all.dim(-1), all.dim(-1)}));
  };
  const Tensor in = rows_of(x);  // [n, in]
  // The factors of DoRA apply to the product without the bias, which is computed again.
  const Tensor plain =
      one.scales() ? linear(in, layer.weight, Tensor(), in.dtype()) : rows_of(y);  // [n, out]
  const Tensor out = one.output(plain, in, layer.weight, layer.bias, pass);
  const HostValues<int32_t> rows(some.rows);
  for (int64_t i = 0; i < rows.size(); ++i)
    copy_elements(y, rows[i] * out.dim(1), out, i * out.dim(1), out.dim(1));
}

}  // namespace

Tensor adapted(const Linear& layer, const Tensor& product, const Tensor& x, const Pass& pass) {
  const LowRankAdapter& own = layer.adapter;
  const Tensor y = own.present() ? own.output(product, x, layer.weight, layer.bias, pass) : product;
  if (layer.alternatives.empty()) return y;
  for (const AdaptedRows& some : pass.adapted_rows) adapt_rows(layer, y, x, some, pass);
  return y;
}

void add_adapter(Linear& layer, const AdapterShape& shape) {
  check(layer.weight.present() && shape.rank >= 1,
        "adapter: rank {} of a weight {}; expected at least 1", shape.rank, layer.weight.shape);
  const int64_t out = layer.weight.shape[0], in = layer.weight.shape[1];
  LowRankAdapter& adapter = layer.adapter;
  adapter.down = {{shape.rank, in}, Role::adapter_down, {}};
  adapter.up = {{out, shape.rank}, Role::adapter_up, {}};
  adapter.magnitude = {shape.dora ? Shape{out} : Shape{}, Role::magnitude, {}};
  adapter.scale = shape.scale;
  adapter.fixed = false;
  adapter.input_dropout = {};
  adapter.input_dropout.probability = shape.dropout;
  adapter.input_dropout.substream = kAdapterSubstreams + shape.index;
}

void initialise_adapter(Linear& layer, uint64_t seed) {
  LowRankAdapter& adapter = layer.adapter;
  Random random(seed, Stream::init, adapter.input_dropout.substream);
  const float bound = 1 / std::sqrt(static_cast<float>(adapter.down.shape[1]));
  adapter.down.value = tensor_from<float>(
      adapter.down.shape, [&](int64_t) { return bound * (2 * random.uniform() - 1); });
  adapter.up.value = zeros(adapter.up.shape);
  if (!adapter.scales()) return;
  const HostValues<float> inverse(inverse_row_lengths(dense(layer.weight)));
  adapter.magnitude.value = tensor_from<float>(
      {inverse.size()}, [&](int64_t i) { return inverse[i] > 0 ? 1 / inverse[i] : 0; });
}

}  // namespace fovea::model
