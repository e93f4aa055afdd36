#include "embed/head_states.h"

#include "base/error.h"

namespace fovea {

Tensor head_states(const Transformer& transformer, const TokenBatch& batch,
                   std::optional<int32_t> start, DType compute, const Probe* probe) {
  const Spec& spec = transformer.spec;
  Pass pass;
  pass.compute = compute;
  pass.probe = probe;
  pass.mask.valid = batch.valid;
  if (!spec.encoder) return transformer.decode(batch.sequence, pass);
  const Tensor memory = transformer.encode(batch.sequence, pass);
  if (!spec.decoder) return memory;
  pass.memory = memory;
  pass.memory_valid = batch.valid;
  return transformer.decode({moved_by_one(batch.sequence.ids, start.value()), {}, {}, {}}, pass);
}

Tensor head_logits(const Transformer& transformer, const TokenBatch& batch, const Tensor& states) {
  return transformer.logits(states, transformer.read_by_head(batch.sequence.ids, batch.valid));
}

std::optional<int32_t> decoder_start_of(const Spec& spec, const Origin& origin,
                                        const std::string& path) {
  if (!spec.encoder || !spec.decoder) return std::nullopt;
  const auto id = configured_id(origin, "decoder_start_token_id");
  if (id && *id < spec.vocabulary) return id;
  fail(ErrorKind::BadFile, "{}: config.json has no decoder_start_token_id; expected a token id",
       path);
}

}  // namespace fovea
