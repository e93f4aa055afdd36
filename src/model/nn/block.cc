#include "nn/block.h"

#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea::model {
namespace {

// The points of a sublayer's input and output, and the dtype of its input.
struct Ends {
  ProbePoint input, output;
  DType operands;
};

// y = sum_norm(added(x, dropout(output_norm(sublayer(input_norm(x)))))), where sublayer(x,
// residual) may add the residual itself.
template <class Sublayer>
Tensor through(const Block& block, const Tensor& x, const Norms& norm, const Pass& pass,
               const Ends& ends, const Dropout& place, Sublayer&& sublayer) {
  const Tensor in = probed(pass, ends.input, norm.input(x, ends.operands));
  // The last product adds the residual if nothing else reads its result.
  const bool reads_output = norm.output.weight.present() || pass.training || pass.probe != nullptr;
  if (block.residual && block.residual_scale == 1 && !reads_output)
    return norm.sum(sublayer(in, x), x.dtype());
  const Tensor y = probed(pass, ends.output, norm.output(sublayer(in, {}), pass.compute));
  const Tensor dropped = dropout(y, pass.dropout_at(place.probability, place.substream));
  return norm.sum(block.added(x, dropped), x.dtype());
}

Dropout place_of(float probability, uint32_t places, int64_t layer, Sublayer which) {
  Dropout place;
  place.probability = probability;
  place.substream = place_of_dropout(places, layer, which);
  return place;
}

// In some stacks, the first attention has no input norm, since the embeddings have a norm.
Placement attention_placement(const StackSpec& spec, int64_t layer) {
  Placement placement = spec.placement;
  if (layer == 0 && !spec.first_norm) placement.input = false;
  return placement;
}

}  // namespace

Block::Block(const StackSpec& spec, const DropoutSpec& dropout, int64_t width, int64_t layer_,
             bool with_cross, uint32_t places)
    : attention_norm(spec.norm, attention_placement(spec, layer_), width),
      layer(layer_),
      parallel(spec.parallel),
      residual(spec.residual),
      residual_scale(spec.residual_scale),
      attention_place(place_of(dropout.residual, places, layer, Sublayer::attention)),
      cross_place(place_of(dropout.residual, kCrossPlaces, layer, Sublayer::attention)),
      ffn_place(place_of(dropout.residual, places, layer, Sublayer::ffn)) {
  if (is_recurrent(spec, layer)) {
    recurrence = Recurrence(spec, width, layer);
  } else if (mixer_of(spec, layer) == MixerKind::latent) {
    latent =
        LatentAttention(spec, width, layer,
                        place_of(dropout.attention, places, layer, Sublayer::attention_weights));
  } else {
    attention = Attention(spec, width, layer, false,
                          place_of(dropout.attention, places, layer, Sublayer::attention_weights));
  }
  if (with_cross) {
    cross =
        Attention(spec, width, layer, true,
                  place_of(dropout.attention, kCrossPlaces, layer, Sublayer::attention_weights));
    cross_norm = Norms(spec.norm, spec.placement, width);
  }
  const Parameter factors{{width}, Role::layer_scale, {}};
  if (spec.layer_scale > 0) attention_scale = factors;
  if (spec.ffn.present && spec.layer_scale > 0) ffn_scale = factors;
  if (spec.ffn.present) {
    ffn = FeedForward(spec, width, layer);
    ffn_norm = Norms(spec.norm, spec.placement, width);
  }
}

Tensor Block::mix(const Tensor& x, const Pass& pass, const Tensor& sum_with) const {
  const bool attends = !recurrence.present() && !latent.present();
  if (attends && !attention_scale.present()) return attention(x, pass, sum_with);
  Tensor y = recurrence.present() ? recurrence(x, pass)
             : latent.present()   ? latent(x, pass)
                                  : attention(x, pass);
  if (attention_scale.present()) y = scale_columns(y, attention_scale.value);
  return sum_with ? add(sum_with, y) : y;
}

Tensor Block::feed(const Tensor& x, const Pass& pass, const Tensor& sum_with) const {
  if (!ffn_scale.present()) return ffn(x, pass, sum_with);
  const Tensor y = scale_columns(ffn(x, pass), ffn_scale.value);
  return sum_with ? add(sum_with, y) : y;
}

Tensor Block::added(const Tensor& x, const Tensor& y) const {
  if (!residual) return cast(y, x.dtype());
  return add(residual_scale == 1 ? x : scale(x, residual_scale), y);
}

Tensor Block::operator()(const Tensor& x, const Pass& pass) const {
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
  const Ends mixer_ends{at(What::mixer_input), at(What::mixer_output),
                        operands(attention.reads_bf16())};
  const Ends ffn_ends{at(What::mlp_input), at(What::mlp_output), operands(ffn.reads_bf16())};
  if (parallel) {
    const auto in = [&](const Ends& ends, const Norms& norms) {
      return probed(pass, ends.input, norms.input(x, ends.operands));
    };
    const Tensor a = probed(pass, mixer_ends.output, mix(in(mixer_ends, attention_norm), pass));
    const Tensor b = probed(pass, ffn_ends.output, feed(in(ffn_ends, ffn_norm), pass));
    const Tensor y = added(x, fovea::dropout(a, pass.dropout_at(attention_place.probability,
                                                                attention_place.substream)));
    return add(y, fovea::dropout(b, pass.dropout_at(ffn_place.probability, ffn_place.substream)));
  }
  Tensor h = through(*this, x, attention_norm, pass, mixer_ends, attention_place,
                     [&](const Tensor& y, const Tensor& with) { return mix(y, pass, with); });
  h = probed(pass, at(What::hidden_mid), std::move(h));
  if (cross.across) {
    h = through(*this, h, cross_norm, pass,
                {cross_at(What::mixer_input), cross_at(What::mixer_output), pass.compute},
                cross_place,
                [&](const Tensor& y, const Tensor& with) { return cross(y, pass, with); });
    h = probed(pass, cross_at(What::hidden_mid), std::move(h));
  }
  if (!ffn.present()) return h;
  return through(
      *this, h, ffn_norm, pass, ffn_ends, ffn_place,
      [&](const Tensor& y, const Tensor& with) { return feed(y, pass, with); });  // [B, T, C]
}

Tensor Block::recomputed(const Tensor& x, const Pass& pass) const {
  if (!pass.recomputes(layer) || pass.probe != nullptr) return (*this)(x, pass);
  const std::vector<Tensor> results = recompute([this, x, pass, units = row_units()] {
    const UnitScope scope(units);
    std::vector<Tensor> losses;
    Tensor values;
    Pass own = pass;
    if (pass.side_losses != nullptr) own.side_losses = &losses;
    if (pass.new_values != nullptr) own.new_values = &values;
    std::vector<Tensor> all = {(*this)(x, own)};
    if (values) all.push_back(values);
    all.insert(all.end(), losses.begin(), losses.end());
    return all;
  });
  auto next = results.begin() + 1;
  if (pass.new_values != nullptr && attention.spec.value_residual > 0) *pass.new_values = *next++;
  if (pass.side_losses != nullptr)
    pass.side_losses->insert(pass.side_losses->end(), next, results.end());
  return results[0];
}

}  // namespace fovea::model
