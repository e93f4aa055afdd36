#include "probing/probe_vectors.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fields.h"
#include "embed/batching.h"
#include "embed/embedder_parts.h"

namespace fovea::study {
namespace {

// Returns the modules that give the pooled hidden states of one layer.
infer::SentenceModules modules_of_layer(const infer::SentenceModules& modules,
                                        const model::Spec& spec, std::optional<int64_t> layer,
                                        ProbePooling pooling) {
  infer::SentenceModules changed = modules;
  if (layer) {
    const int64_t layers = (spec.encoder ? *spec.encoder : *spec.decoder).layers;
    check_field(*layer <= layers, "layers", "{}; expected 0 to {}, the model's layers", *layer,
                layers);
    infer::LayerMean& only = changed.layers.emplace();
    only.first = *layer;
    only.weights.assign(static_cast<size_t>(layers - *layer + 1), 0.0f);
    only.weights[0] = 1;
  }
  if (pooling != ProbePooling::model)
    changed.pooling.modes = {static_cast<infer::TokenPooling>(static_cast<int>(pooling) - 1)};
  changed.after.clear();
  changed.width = spec.width * std::ssize(changed.pooling.modes);
  return changed;
}

}  // namespace

ProbeVectors probe_vectors(const infer::Embedder& embedder, const std::vector<std::string>& texts,
                           std::optional<int64_t> layer, ProbePooling pooling,
                           const std::function<void(double)>& reached) {
  const infer::SentenceModel& model = embedder.parts().model;
  infer::SentenceModules modules = model.modules;
  if (layer || pooling != ProbePooling::model)
    modules = modules_of_layer(modules, model.transformer.spec, layer, pooling);
  ProbeVectors vectors{modules.width, {}, 0};
  constexpr size_t kTextsAtOnce = 512;  // sorted by length together
  for (size_t begin = 0; begin < texts.size(); begin += kTextsAtOnce) {
    infer::EmbedOptions options;
    options.name_of_text = [&](size_t i) { return fmt::format("text {}", begin + i + 1); };
    const size_t end = std::min(texts.size(), begin + kTextsAtOnce);
    const infer::EmbedInput input =
        infer::read_texts(model,
                          {texts.begin() + static_cast<ptrdiff_t>(begin),
                           texts.begin() + static_cast<ptrdiff_t>(end)},
                          options);
    const Tensor rows =
        infer::in_batches(input.texts, modules.width, 0, [&](const infer::TokenBatch& batch) {
          return infer::text_vectors(model.transformer, modules, batch, input.prompt, DType::f32);
        });
    infer::check_finite(rows, options);
    const std::vector<float> values = to_floats(rows);
    vectors.values.insert(vectors.values.end(), values.begin(), values.end());
    for (const int64_t tokens : input.result.cut) vectors.cut += tokens > 0;
    reached(static_cast<double>(end) / static_cast<double>(texts.size()));
  }
  return vectors;
}

}  // namespace fovea::study
