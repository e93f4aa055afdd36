#include "nn/stack.h"

#include "base/error.h"
#include "base/stop.h"

namespace fovea::model {

Stack::Stack(const StackSpec& spec, const DropoutSpec& dropout, StackWidths widths, int64_t context,
             Kind kind)
    : positions(spec, context, widths.of_embedding(), kind != Kind::encoder && spec.causal),
      embedding_norm(spec.norm, widths.of_embedding(), spec.embedding_norm),
      layers(spec.layers),
      norm(spec.norm, widths.stream, spec.final_norm),
      decodes(kind != Kind::encoder),
      causal(decodes && spec.causal),
      norm_before_positions(spec.norm_before_positions) {
  if (widths.embedding > 0) projection = Linear(widths.embedding, widths.stream, true);
  const uint32_t first_substream = decodes ? kDecoderSubstreams : kEncoderSubstreams;
  embedding_dropout.probability = dropout.embedding;
  embedding_dropout.substream = first_substream;
  const int64_t step = spec.layer_groups > 0 ? layers / spec.layer_groups : 1;
  for (int64_t layer = 0; layer < layers; layer += step)
    blocks.emplace_back(spec, dropout, widths.stream, layer, kind == Kind::decoder_across,
                        first_substream);
}

std::shared_ptr<const Block> Stack::block(int64_t layer) const {
  if (shares_weights()) {
    const Block& first = blocks[static_cast<size_t>(layer / (layers / std::ssize(blocks)))];
    return std::make_shared<const Block>(first.of_layer(layer));
  }
  return {std::shared_ptr<const Block>(), &blocks[static_cast<size_t>(layer)]};
}

Tensor Stack::operator()(Tensor x, const Pass& given, const Tensor& given_positions,
                         const Input* image) const {
  LayerPass pass(given);
  // The tokens of a cache are read in order, in pieces that must not affect the results.
  pass.mask.causal = causal || (decodes && pass.cache != nullptr);
  Tensor token_positions = given_positions;
  if (pass.cache != nullptr) {
    pass.cache->begin(x.dim(0), x.dim(1));
    if (!token_positions) token_positions = pass.cache->positions();
  }
  if (const DocumentStarts* documents = pass.mask.documents.get(); documents && !token_positions) {
    check(std::ssize(*documents) == x.dim(0), "documents of {} rows; expected {}",
          documents->size(), x.dim(0));
    token_positions = positions_in_documents(*documents, x.dim(1));
  }
  positions.prepare(pass, x.dim(1), token_positions, x.device());
  if (pass.distances)
    pass.distances =
        dropout(pass.distances, pass.dropout_at(embedding_dropout.probability, kDistanceSubstream));
  x = probed(pass, ProbePoint::What::embedding, 0, std::move(x));
  if (norm_before_positions) x = embedding_norm(x, x.dtype());
  x = positions.add_to(x, token_positions);
  if (image != nullptr) x = image->with_registers(x);
  if (!norm_before_positions) x = embedding_norm(x, x.dtype());
  x = dropout(x, pass.dropout_at(embedding_dropout.probability, embedding_dropout.substream));
  if (projection.weight.present()) x = cast(projection(cast(x, pass.compute), pass), x.dtype());
  Tensor first;  // the values of the first attention layer
  for (int64_t i = 0; i < layers; ++i) {
    stop_if_requested();
    x = probed(pass, ProbePoint::What::hidden, i, std::move(x));
    pass.first_values = first;
    pass.new_values = first ? nullptr : &first;
    positions.prepare_layer(pass, i, x.dim(1), x.device());
    x = Block::recomputed(block(i), x, pass);
  }
  if (pass.cache != nullptr) pass.cache->end();
  x = probed(pass, ProbePoint::What::unnormed, layers, std::move(x));
  return probed(pass, ProbePoint::What::hidden, layers, norm(x, pass.compute));
}

}  // namespace fovea::model
