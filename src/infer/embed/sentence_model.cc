#include "embed/sentence_model.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/module_files.h"
#include "families/static_embedding.h"
#include "open/directory.h"

namespace fovea::infer {
namespace {

void check_layers(const LayerMean& mean, const model::Spec& spec, const std::string& folder) {
  const int64_t layers = (spec.encoder ? *spec.encoder : *spec.decoder).layers;
  const int64_t weights = mean.first + static_cast<int64_t>(mean.weights.size());
  if (weights != layers + 1)
    fail(ErrorKind::BadFile, "{}: WeightedLayerPooling has {} layers; expected {}", folder,
         weights - 1, layers);
}

// Returns element i of x [N], `count` times: [count]
Tensor repeated(const Tensor& x, int64_t i, int64_t count) {
  return gather(full({count}, static_cast<double>(i), DType::i32), x.view({x.size(), 1}))
      .view({count});
}

SentenceModel open_static_model(const std::string& folder,
                                const std::vector<model::AdapterUse>& adapters) {
  const std::string inner = model::transformer_folder(folder);
  if (!adapters.empty())
    fail(ErrorKind::Unsupported, "{}: has embeddings only; expected no adapter", folder);
  model::Transformer transformer = model::open_static(inner);
  const int64_t width = transformer.spec.width, most = transformer.spec.context;
  return {std::move(transformer),
          {},
          read_modules(folder, width),
          TextFormat(text::Tokenizer::open(inner), most, {.max_tokens = {}, .types = false}, false),
          {}};
}

}  // namespace

TokenBatch token_batch(const std::vector<TokenizedText>& texts, const std::vector<size_t>& chosen) {
  int64_t longest = 0;
  bool typed = false;
  for (const size_t i : chosen) {
    longest = std::max(longest, static_cast<int64_t>(texts[i].ids.size()));
    typed = typed || !texts[i].types.empty();
  }
  const int64_t B = static_cast<int64_t>(chosen.size());
  TokenBatch batch;
  std::vector<int32_t> ids, types;  // rows filled up with 0
  for (const size_t i : chosen) {
    const TokenizedText& text = texts[i];
    batch.valid.push_back({0, std::ssize(text.ids)});
    ids.insert(ids.end(), text.ids.begin(), text.ids.end());
    types.insert(types.end(), text.types.begin(), text.types.end());
    ids.resize(batch.valid.size() * static_cast<size_t>(longest));
    types.resize(ids.size());
  }
  batch.sequence.ids = tensor_of(ids, {B, longest});
  if (typed) batch.sequence.types = tensor_of(types, {B, longest});
  return batch;
}

void SentenceModel::move_to(const Device& device) {
  model::move_to(device, transformer);
  move_modules(device, modules.after);
  for (Tensor* each :
       {&modules.pooling.attention, modules.layers ? &modules.layers->scores : nullptr})
    if (each != nullptr) *each = each->to(device);
}

SentenceModel SentenceModel::open(const std::string& folder, model::Weights weights,
                                  const model::Packing& packing,
                                  const std::vector<model::AdapterUse>& adapters) {
  if (model::is_static(folder)) return open_static_model(folder, adapters);
  const std::string inner = model::transformer_folder(folder);
  model::ModelFiles files = model::open_model_files(inner, weights, packing, adapters);
  const model::Spec& spec = files.model.spec;
  if (spec.input.kind != model::InputKind::tokens)
    fail(ErrorKind::Unsupported, "{}: the model does not read text; expected a text model", folder);
  if (!model::has_modules(folder) && !names_pooling(folder))
    files.warnings.push_back(
        fmt::format("{}: no modules.json, so a text's vector is the mean of its tokens", folder));
  SentenceModules modules = read_modules(folder, spec.width);
  if (modules.layers) check_layers(*modules.layers, spec, folder);
  TextFormat format = TextFormat::open(inner, spec);
  return {std::move(files.model), std::move(files.origin), std::move(modules), std::move(format),
          std::move(files.warnings)};
}

Tensor token_states(const model::Transformer& transformer, const SentenceModules& modules,
                    const TokenBatch& batch, DType compute, const model::Probe* given,
                    int64_t recompute) {
  model::Pass pass;
  pass.compute = compute;
  pass.recompute = recompute;
  pass.mask.valid = batch.valid;
  pass.probe = given;
  Tensor mean, shares;
  model::Probe probe = given != nullptr ? *given : model::Probe();
  if (modules.layers) {
    const LayerMean& layers = *modules.layers;
    if (layers.scores) shares = softmax(layers.scores);
    probe.see = [&](const model::ProbePoint& point, Tensor& x) {
      if (given != nullptr && given->see) given->see(point, x);
      if (point.what != model::ProbePoint::What::hidden) return;
      const int64_t layer = point.layer - layers.first;
      if (layer < 0) return;
      const Tensor part = shares ? scale_columns(x, repeated(shares, layer, x.dim(-1)))
                                 : scale(x, layers.weights[static_cast<size_t>(layer)]);
      mean = mean ? add(mean, part) : part;
    };
    pass.probe = &probe;
  }
  const model::Spec& spec = transformer.spec;
  const Tensor last = spec.encoder ? transformer.encode(batch.sequence, pass)
                                   : transformer.decode(batch.sequence, pass);
  return mean ? mean : last;
}

Tensor text_vectors(const model::Transformer& transformer, const SentenceModules& modules,
                    const TokenBatch& batch, int64_t prompt, DType compute,
                    const model::Probe* probe, int64_t recompute) {
  return pooled_vectors(token_states(transformer, modules, batch, compute, probe, recompute),
                        modules, batch, prompt);
}

Tensor pooled_vectors(const Tensor& states, const SentenceModules& modules, const TokenBatch& batch,
                      int64_t prompt) {
  std::vector<Interval> pooled = batch.valid;
  if (!modules.pooling.include_prompt)
    for (Interval& row : pooled) row.begin = std::min(prompt, row.end - 1);
  std::vector<Tensor> parts;
  for (const TokenPooling mode : modules.pooling.modes)
    parts.push_back(mode == TokenPooling::attention
                        ? attention_pooling(states, modules.pooling.attention, pooled)
                        : pool_tokens(states, mode, pooled));
  Tensor x = concat_width(parts);
  for (const VectorModule& module : modules.after) x = apply_module(module, x);
  return x;  // [B, C]
}

}  // namespace fovea::infer
