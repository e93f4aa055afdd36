#include "nn/block.h"

namespace fovea {
namespace {

// y = sum_norm(x + dropout(output_norm(sublayer(input_norm(x)))))
template <class Sublayer>
Tensor residual(const Tensor& x, const Norms& norm, const Pass& pass, const Dropout& place,
                Sublayer&& sublayer) {
  const Tensor y = norm.output(sublayer(norm.input(x, pass.compute)), pass.compute);
  const Tensor dropped = dropout(y, pass.dropout_at(place.probability, place.substream));
  return norm.sum(add(x, dropped), x.dtype());
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

Block::Block(const StackSpec& spec, const DropoutSpec& dropout, int64_t width, int64_t layer,
             bool with_cross, uint32_t places)
    : attention(spec, width, layer, false,
                place_of(dropout.attention, places, layer, Sublayer::attention_weights)),
      ffn(spec, width, layer),
      attention_norm(spec.norm, attention_placement(spec, layer), width),
      ffn_norm(spec.norm, spec.placement, width),
      parallel(spec.parallel),
      attention_place(place_of(dropout.residual, places, layer, Sublayer::attention)),
      cross_place(place_of(dropout.residual, kCrossPlaces, layer, Sublayer::attention)),
      ffn_place(place_of(dropout.residual, places, layer, Sublayer::ffn)) {
  if (!with_cross) return;
  cross = Attention(spec, width, layer, true,
                    place_of(dropout.attention, kCrossPlaces, layer, Sublayer::attention_weights));
  cross_norm = Norms(spec.norm, spec.placement, width);
}

Tensor Block::operator()(const Tensor& x, const Pass& pass) const {
  if (parallel) {
    const Tensor a = attention(attention_norm.input(x, pass.compute), pass);
    const Tensor b = ffn(ffn_norm.input(x, pass.compute), pass);
    const Tensor y = add(x, fovea::dropout(a, pass.dropout_at(attention_place.probability,
                                                              attention_place.substream)));
    return add(y, fovea::dropout(b, pass.dropout_at(ffn_place.probability, ffn_place.substream)));
  }
  Tensor h = residual(x, attention_norm, pass, attention_place,
                      [&](const Tensor& y) { return attention(y, pass); });
  if (cross.across)
    h = residual(h, cross_norm, pass, cross_place, [&](const Tensor& y) { return cross(y, pass); });
  return residual(h, ffn_norm, pass, ffn_place,
                  [&](const Tensor& y) { return ffn(y, pass); });  // [B, T, C]
}

}  // namespace fovea
