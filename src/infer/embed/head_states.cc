#include "embed/head_states.h"

#include "base/error.h"

namespace fovea::infer {

Tensor head_states(const model::Transformer& transformer, const TokenBatch& batch,
                   std::optional<int32_t> start, DType compute, const model::Probe* probe,
                   int64_t recompute) {
  const model::Spec& spec = transformer.spec;
  model::Pass pass;
  pass.compute = compute;
  pass.probe = probe;
  pass.recompute = recompute;
  pass.mask.valid = batch.valid;
  if (!spec.encoder) return transformer.decode(batch.sequence, pass);
  const Tensor memory = transformer.encode(batch.sequence, pass);
  if (!spec.decoder) return memory;
  pass.memory = memory;
  pass.memory_valid = batch.valid;
  return transformer.decode({model::moved_by_one(batch.sequence.ids, start.value()), {}, {}, {}},
                            pass);
}

Tensor head_logits(const model::Transformer& transformer, const TokenBatch& batch,
                   const Tensor& states) {
  return transformer.logits(states, transformer.read_by_head(batch.sequence.ids, batch.valid));
}

std::optional<int32_t> decoder_start_of(const model::Spec& spec, const model::Origin& origin,
                                        const std::string& path) {
  if (!spec.encoder || !spec.decoder) return std::nullopt;
  const auto id = model::configured_id(origin, "decoder_start_token_id");
  if (id && *id < spec.vocabulary) return id;
  fail(ErrorKind::BadFile, "{}: config.json has no decoder_start_token_id; expected a token id",
       path);
}

}  // namespace fovea::infer
