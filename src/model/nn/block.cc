#include "nn/block.h"

#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea::model {
namespace {

// Where a sublayer is in its layer: its probe points, the dtype of its input, its norms and its
// dropout.
struct Frame {
  ProbePoint input, unnormed, output, sum;
  DType operands;
  const Norms& norms;
  const Dropout& drop;
};

// dropout(output_norm(sublayer(input_norm(x)))), where sublayer(y, residual) may add a residual.
template <class Sublayer>
Tensor branch(const Frame& frame, const Tensor& in, const Pass& pass, const Sublayer& sublayer) {
  Tensor y = sublayer(in, {});
  if (frame.norms.output.present()) y = probed(pass, frame.unnormed, std::move(y));
  y = probed(pass, frame.output, frame.norms.output(y, pass.compute));
  return dropout(y, pass.dropout_at(frame.drop.probability, frame.drop.substream));
}

Tensor input_of(const Frame& frame, const Norm& norm, const Tensor& x, const Pass& pass) {
  return probed(pass, frame.input, norm(x, frame.operands));
}

// y = sum_norm(added(x, branch(x)))
template <class Sublayer>
Tensor residual_sublayer(const Block& block, const Tensor& x, const Frame& frame, const Pass& pass,
                         const Sublayer& sublayer) {
  const Tensor in = input_of(frame, frame.norms.input, x, pass);
  // The last product adds the residual if nothing else reads its result.
  const bool reads_output = frame.norms.output.present() || pass.training || pass.probe != nullptr;
  if (block.residual && block.residual_scale == 1 && !reads_output)
    return frame.norms.sum(sublayer(in, x), x.dtype());
  Tensor sum = block.added(x, branch(frame, in, pass, sublayer));
  if (frame.norms.sum.present()) sum = probed(pass, frame.sum, std::move(sum));
  return frame.norms.sum(sum, x.dtype());
}

// Marks the matrices of all products.
struct TernaryMarks {
  void linear(const std::string&, Linear& layer) const { layer.weight.ternary = true; }
  void operator()(const std::string&, Parameter&) const {}
};

Dropout dropout_of(float probability, uint32_t first_substream, int64_t layer, Sublayer which) {
  Dropout drop;
  drop.probability = probability;
  drop.substream = dropout_substream(first_substream, layer, which);
  return drop;
}

Placement placement_of(const StackSpec& spec, int64_t layer) {
  return spec.recurrent_pre_norm && is_recurrent(spec, layer) ? Placement() : spec.placement;
}

// In some stacks, the first attention has no input norm, since the embeddings have a norm.
Placement attention_placement(const StackSpec& spec, int64_t layer) {
  Placement placement = placement_of(spec, layer);
  if (layer == 0 && !spec.first_norm) placement.input = false;
  return placement;
}

}  // namespace

Block::Block(const StackSpec& spec, const DropoutSpec& dropout, int64_t width, int64_t layer_,
             bool with_cross, uint32_t first_substream)
    : attention_norm(spec.norm, attention_placement(spec, layer_), width),
      layer(layer_),
      parallel(spec.parallel),
      residual(spec.residual),
      residual_scale(spec.residual_scale),
      sublayer_scale(spec.sublayer_scale),
      attention_dropout(dropout_of(dropout.residual, first_substream, layer, Sublayer::attention)),
      cross_dropout(dropout_of(dropout.residual, kCrossSubstreams, layer, Sublayer::attention)),
      ffn_dropout(dropout_of(dropout.residual, first_substream, layer, Sublayer::ffn)) {
  const auto weights = [&](uint32_t first) {
    return dropout_of(dropout.attention, first, layer, Sublayer::attention_weights);
  };
  mixer = mixer_facts(mixer_of(spec, layer)).make(spec, width, layer, weights(first_substream));
  if (with_cross) {
    cross = Attention(spec, width, layer, weights(kCrossSubstreams), true);
    cross_norm = Norms(spec.norm, spec.placement, width);
  }
  const Parameter factors{{width}, Role::layer_scale, {}};
  if (spec.layer_scale > 0) attention_scale = factors;
  if (spec.ffn.present && spec.layer_scale > 0) ffn_scale = factors;
  if (spec.ffn.present) {
    ffn = FeedForward(spec, width, layer);
    if (!spec.one_norm) ffn_norm = Norms(spec.norm, placement_of(spec, layer), width);
  }
  TernaryMarks marks;
  if (spec.ternary) each(marks, "");
}

Tensor Block::scaled(const Tensor& y, const Parameter& factors) const {
  const Tensor z = factors.present() ? scale_columns(y, factors.value) : y;
  return sublayer_scale == 1 ? z : scale(z, sublayer_scale);
}

Tensor Block::mix(const Tensor& x, const LayerPass& pass, const Tensor& sum_with) const {
  const auto mixed = [&](const Tensor& with) {
    return std::visit([&](const auto& m) { return m(x, pass, with); }, mixer);
  };
  if (!attention_scale.present() && sublayer_scale == 1) return mixed(sum_with);
  const Tensor y = scaled(mixed({}), attention_scale);
  return sum_with ? add(sum_with, y) : y;
}

Tensor Block::feed(const Tensor& x, const LayerPass& pass, const Tensor& sum_with) const {
  if (!ffn_scale.present() && sublayer_scale == 1) return (*ffn)(x, pass, sum_with);
  const Tensor y = scaled((*ffn)(x, pass), ffn_scale);
  return sum_with ? add(sum_with, y) : y;
}

Tensor Block::added(const Tensor& x, const Tensor& y) const {
  if (!residual) return cast(y, x.dtype());
  return add(residual_scale == 1 ? x : scale(x, residual_scale), y);
}

Tensor Block::operator()(const Tensor& x, const LayerPass& pass) const {
  using What = ProbePoint::What;
  const auto at = [&](What what) { return ProbePoint{what, layer, pass.stack}; };
  const auto cross_at = [&](What what) {
    return ProbePoint{what, layer, ProbePoint::Stack::cross};
  };
  // To a cache, queries and keys are rounded once, after their rotation.
  const auto operands = [&](bool reads_bf16) {
    const bool narrow = reads_bf16 && pass.compute == DType::f32 && pass.cache == nullptr;
    return narrow ? DType::bf16 : pass.compute;
  };
  const Frame mixer_frame{at(What::mixer_input),
                          at(What::mixer_unnormed),
                          at(What::mixer_output),
                          at(What::mixer_sum),
                          operands(std::visit([](const auto& m) { return m.reads_bf16(); }, mixer)),
                          attention_norm,
                          attention_dropout};
  const Frame ffn_frame{at(What::mlp_input),
                        at(What::mlp_unnormed),
                        at(What::mlp_output),
                        at(What::mlp_sum),
                        operands(ffn && ffn->reads_bf16()),
                        ffn_norm,
                        ffn_dropout};
  const auto mixes = [&](const Tensor& y, const Tensor& with) { return mix(y, pass, with); };
  const auto feeds = [&](const Tensor& y, const Tensor& with) { return feed(y, pass, with); };
  if (parallel) {
    const Tensor h = added(
        x, branch(mixer_frame, input_of(mixer_frame, attention_norm.input, x, pass), pass, mixes));
    return add(h, branch(ffn_frame, input_of(ffn_frame, ffn_input_norm(), x, pass), pass, feeds));
  }
  Tensor h =
      probed(pass, at(What::hidden_mid), residual_sublayer(*this, x, mixer_frame, pass, mixes));
  if (cross) {
    const Frame frame{cross_at(What::mixer_input),
                      cross_at(What::mixer_unnormed),
                      cross_at(What::mixer_output),
                      cross_at(What::mixer_sum),
                      pass.compute,
                      cross_norm,
                      cross_dropout};
    h = probed(pass, cross_at(What::hidden_mid),
               residual_sublayer(*this, h, frame, pass, [&](const Tensor& y, const Tensor& with) {
                 return (*cross)(y, pass, with);
               }));
  }
  return ffn ? residual_sublayer(*this, h, ffn_frame, pass, feeds) : h;  // [B, T, C]
}

Block Block::of_layer(int64_t other) const {
  Block copy = *this;
  copy.layer = other;
  std::visit([&](auto& m) { m.layer = other; }, copy.mixer);
  if (copy.cross) copy.cross->layer = other;
  if (copy.ffn) copy.ffn->layer = other;
  const auto move = [&](Dropout& drop) {
    drop.substream += kSubstreamsPerLayer * static_cast<uint32_t>(other - layer);
  };
  for (Dropout* drop : {&copy.attention_dropout, &copy.cross_dropout, &copy.ffn_dropout})
    move(*drop);
  if (copy.cross) move(copy.cross->weight_dropout);
  std::visit(
      [&](auto& m) {
        if constexpr (requires { m.weight_dropout; }) move(m.weight_dropout);
      },
      copy.mixer);
  return copy;
}

Tensor Block::recomputed(const std::shared_ptr<const Block>& block, const Tensor& x,
                         const LayerPass& pass) {
  if (!pass.recomputes(block->layer) || pass.probe != nullptr) return (*block)(x, pass);
  const std::vector<Tensor> results = recompute([block, x, pass, units = row_units()] {
    const UnitScope scope(units);
    std::vector<Tensor> losses;
    Tensor values;
    LayerPass own = pass;
    if (pass.side_losses != nullptr) own.side_losses = &losses;
    if (pass.new_values != nullptr) own.new_values = &values;
    std::vector<Tensor> all = {(*block)(x, own)};
    if (values) all.push_back(values);
    all.insert(all.end(), losses.begin(), losses.end());
    return all;
  });
  auto next = results.begin() + 1;
  const auto* attention = block->mixer_as<Attention>();
  if (pass.new_values != nullptr && attention != nullptr && attention->spec.value_residual > 0)
    *pass.new_values = *next++;
  if (pass.side_losses != nullptr)
    pass.side_losses->insert(pass.side_losses->end(), next, results.end());
  return results[0];
}

}  // namespace fovea::model
