#include "generate/reading.h"

#include <algorithm>
#include <limits>
#include <map>

namespace fovea::infer {
namespace {}  // namespace

bool shares_beginnings(const model::Spec& spec) {
  const model::PositionSpec& position = spec.decoder->position;
  const model::RotaryScaling scaling = position.rotary.scaling;
  const bool by_length =
      position.kind == model::PositionKind::rotary &&
      (scaling == model::RotaryScaling::dynamic || scaling == model::RotaryScaling::longrope);
  return !spec.encoder && !by_length;
}

int64_t short_context(const model::Spec& spec) {
  if (!spec.decoder) return std::numeric_limits<int64_t>::max();
  const model::PositionSpec& position = spec.decoder->position;
  const bool changes = position.kind == model::PositionKind::rotary &&
                       position.rotary.scaling == model::RotaryScaling::longrope;
  return changes ? position.rotary.original_context : std::numeric_limits<int64_t>::max();
}

std::vector<model::AdaptedRows> rows_by_adapter(
    const std::vector<std::pair<size_t, int64_t>>& texts) {
  std::map<size_t, std::vector<int32_t>> rows;
  int32_t next = 0;
  for (const auto& [adapter, count] : texts) {
    for (int64_t i = 0; i < count; ++i, ++next)
      if (adapter > 0) rows[adapter - 1].push_back(next);
  }
  std::vector<model::AdaptedRows> found;
  for (const auto& [adapter, its] : rows)
    found.push_back({adapter, tensor_of(its, {std::ssize(its)})});
  return found;
}

// Sources of similar length are encoded together, since padding costs time.
void encode_sources(const model::Transformer& model, model::PagePool& pool,
                    std::vector<Source> sources, DType compute, int64_t step_tokens) {
  const auto length = [](const Source& source) { return std::ssize(*source.ids); };
  std::stable_sort(sources.begin(), sources.end(),
                   [&](const Source& a, const Source& b) { return length(a) < length(b); });
  for (size_t begin = 0; begin < sources.size();) {
    const int64_t shortest = length(sources[begin]);
    size_t end = begin + 1;
    while (end < sources.size() && length(sources[end]) <= shortest + shortest / 4 + 1 &&
           static_cast<int64_t>(end - begin + 1) * length(sources[end]) <= 2 * step_tokens)
      ++end;
    const auto B = static_cast<int64_t>(end - begin);
    const int64_t S = length(sources[end - 1]);
    const Tensor ids = zeros({B, S}, DType::i32);
    model::Pass pass;
    pass.compute = compute;
    std::vector<model::KvCache::Member> members;
    std::vector<std::pair<size_t, int64_t>> adapters;
    for (int64_t b = 0; b < B; ++b) {
      const Source& source = sources[begin + static_cast<size_t>(b)];
      std::copy(source.ids->begin(), source.ids->end(), ids.data_as<int32_t>() + b * S);
      pass.mask.valid.push_back({0, length(source)});
      members.push_back({source.text, 0, 0});
      adapters.emplace_back(source.adapter, S);
    }
    pass.adapted_rows = rows_by_adapter(adapters);
    const Tensor memory = model.encode({ids, {}, {}, {}}, pass);
    model::KvCache cache(pool, members);
    pass.cache = &cache;
    pass.memory_valid = pass.mask.valid;
    model.remember(memory, pass);
    begin = end;
  }
}

void remember_source(const model::Transformer& model, model::PagePool& pool,
                     model::CachedText& text, const Tensor& memory, DType compute) {
  model::KvCache cache(pool, {{&text, 0, 0}});
  model::Pass pass;
  pass.compute = compute;
  pass.cache = &cache;
  model.remember(memory, pass);
}

Tensor read_batch(const model::Transformer& model, model::PagePool& pool,
                  std::vector<model::KvCache::Member> members, const std::vector<int32_t>& tokens,
                  DType compute, const model::Probe* probe, const std::vector<size_t>& adapters,
                  const model::TokenVectors& vectors) {
  model::Sequence sequence{tensor_of(tokens, {1, std::ssize(tokens)}), {}, {}, {}};
  if (!vectors.rows.empty()) {
    const int64_t N = std::ssize(vectors.rows);
    sequence.vectors = tensor_of(vectors.values, {N, std::ssize(vectors.values) / N});
    sequence.vector_rows = tensor_of(vectors.rows, {std::ssize(vectors.rows)});
  }
  std::vector<std::pair<size_t, int64_t>> texts;
  for (size_t i = 0; i < adapters.size(); ++i) texts.emplace_back(adapters[i], members[i].tokens);
  model::KvCache cache(pool, std::move(members));
  model::Pass pass;
  pass.adapted_rows = rows_by_adapter(texts);
  pass.compute = compute;
  pass.cache = &cache;
  pass.probe = probe;
  const Tensor hidden = model.spec.decoder ? model.decode(sequence, pass)
                                           : model.encode(sequence, pass);  // [1, R, C]
  return hidden.view({hidden.dim(1), hidden.dim(2)});
}

Tensor logits_of(const model::Transformer& model, const Tensor& hidden,
                 const std::vector<int32_t>& rows) {
  return model.logits(gather(tensor_of(rows, {std::ssize(rows)}), hidden)).to(cpu_device());
}

}  // namespace fovea::infer
