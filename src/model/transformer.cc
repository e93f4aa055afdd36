#include "model/transformer.h"

#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace fovea {

Transformer::Transformer(const Spec& s)
    : spec(s),
      token_embedding{{s.vocabulary, s.width}, Role::token_embedding, {}},
      position_embedding{s.position == Position::learned ? Shape{s.context, s.width} : Shape{},
                         Role::position_embedding,
                         {}},
      decoder(s.decoder, s.dropout, s.width),
      head(s.tied_head ? Linear() : Linear(s.width, s.vocabulary, false)) {}

Tensor Transformer::hidden(const Tensor& ids, const Pass& pass, const Tensor& positions) const {
  const int64_t B = ids.dim(0), T = ids.dim(1);
  Tensor x = embedding(ids, token_embedding.value);  // [B, T, C]
  if (position_embedding.present()) {
    Tensor places = positions;
    if (!places) {
      places = empty({B, T}, DType::i32);
      const int64_t first = pass.cache != nullptr ? pass.cache->length() : 0;
      check(first + T <= spec.context, "{} tokens; expected at most {}, the model's context",
            first + T, spec.context);
      for (int64_t i = 0; i < B * T; ++i)
        places.data_as<int32_t>()[i] = static_cast<int32_t>(first + i % T);
    }
    x = add(x, embedding(places, position_embedding.value));
  }
  return decoder(dropout(x, pass.drop(spec.dropout.embedding, 0)), pass);
}

Tensor Transformer::logits(const Tensor& hidden) const {
  const DType out = hidden.dtype() == DType::f64 ? DType::f64 : DType::f32;
  return linear(hidden, spec.tied_head ? token_embedding.value : head.weight.value, {}, out);
}

// Radford et al. 2019: normal weights; those that write into the residual stream are smaller by the
// root of their number.
void initialise(Transformer& model, uint64_t seed) {
  const float deviation = model.spec.init_deviation;
  const float residual =
      deviation / std::sqrt(2.0f * static_cast<float>(model.spec.decoder.layers));
  uint32_t index = 0;  // each parameter draws from its own part of the stream
  model.each([&](const std::string&, Parameter& p) {
    p.value = zeros(p.shape);
    Random random(seed, Stream::init, index++);
    float* w = p.value.data_as<float>();
    for (int64_t i = 0; i < p.value.size(); ++i) {
      switch (p.role) {
        case Role::gain: w[i] = 1.0f; break;
        case Role::bias: break;
        case Role::residual_matrix: w[i] = residual * random.normal(); break;
        default: w[i] = deviation * random.normal();
      }
    }
  });
}

int64_t parameter_count(Transformer& model) {
  int64_t count = 0;
  model.each([&](const std::string&, Parameter& p) { count += elements(p.shape); });
  return count;
}

}  // namespace fovea
