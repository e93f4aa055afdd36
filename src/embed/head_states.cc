#include "embed/head_states.h"

#include <algorithm>

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
  const Tensor& ids = batch.sequence.ids;
  const int64_t B = ids.dim(0), T = ids.dim(1);
  Sequence moved{.ids = empty({B, T}, DType::i32), .places = {}, .types = {}, .signal = {}};
  for (int64_t b = 0; b < B; ++b) {
    const int32_t* from = ids.data_as<int32_t>() + b * T;
    int32_t* to = moved.ids.data_as<int32_t>() + b * T;
    *to = start.value();
    std::copy_n(from, T - 1, to + 1);
  }
  pass.memory = memory;
  pass.memory_valid = batch.valid;
  return transformer.decode(moved, pass);
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
