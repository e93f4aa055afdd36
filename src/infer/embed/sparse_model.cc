#include "embed/sparse_model.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/math.h"
#include "base/threads.h"
#include "checkpoint/module_files.h"
#include "embed/head_states.h"
#include "fovea/core/excerpt.h"
#include "open/directory.h"
#include "ops/ops.h"
#include "safetensors/safetensors.h"
#include "tensor/host_values.h"

namespace fovea::infer {
namespace {

// log(1 + x) for x >= 0; the quotient corrects the rounding of 1 + x (Kahan).
float log_of_one_plus(float x) {
  const double u = 1.0 + double{x};
  return u == 1 ? x : static_cast<float>(math::log(u) * (double{x} / (u - 1)));
}

float weight_of(float logit, const SpladePooling& pooling) {
  if (logit <= 0) return 0;
  const float once = log_of_one_plus(logit);
  return pooling.twice ? log_of_one_plus(once) : once;
}

SpladePooling read_splade_pooling(const std::string& folder) {
  const std::string file = folder + "/config.json";
  const nlohmann::json config = read_json(file);
  if (!config.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected keys and values in braces", file);
  const std::string strategy = find_string(config, "pooling_strategy", file).value_or("max");
  const std::string function = find_string(config, "activation_function", file).value_or("relu");
  if (strategy != "max" && strategy != "sum")
    fail(ErrorKind::Unsupported, "{}: pooling_strategy is {}; expected max or sum", file,
         excerpt(strategy, 40));
  if (function != "relu" && function != "log1p_relu")
    fail(ErrorKind::Unsupported, "{}: activation_function is {}; expected relu or log1p_relu", file,
         excerpt(function, 40));
  return {strategy == "sum", function == "log1p_relu"};
}

// The weights of an older directory are in a JSON file, by the tokens' texts.
std::vector<float> weights_in(const std::string& folder, const text::Tokenizer& tokenizer) {
  const std::string named = folder + "/model.safetensors";
  if (is_file(named)) {
    const SafeTensors tensors(named);
    const StoredTensor* stored = tensors.find("weight");
    if (stored == nullptr || stored->shape.size() != 1 || stored->shape[0] < tokenizer.size())
      fail(ErrorKind::BadFile, "{}: weight is {}; expected at least [{}]", named,
           stored == nullptr ? "missing" : describe(stored->shape), tokenizer.size());
    return to_floats(convert(tensors.tensor("weight"), DType::f32));
  }
  const std::string file = folder + "/idf.json";
  const nlohmann::json json = read_json(file);
  std::vector<float> weights(static_cast<size_t>(tokenizer.size()));
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected the weights of tokens", file);
  for (const auto& [token, value] : json.items()) {
    if (!value.is_number())
      fail(ErrorKind::BadFile, "{}: {} is {}; expected a number", file, excerpt(token, 40),
           brief(value));
    if (const auto id = tokenizer.id_of(token))
      weights[static_cast<size_t>(*id)] = value.get<float>();
  }
  return weights;
}

TokenWeights read_token_weights(const model::ListedModule& module) {
  const std::string& folder = module.folder;
  constexpr int64_t kUnlimited = int64_t{1} << 40;
  text::Tokenizer tokenizer = text::Tokenizer::open(folder);
  TextSettings settings = read_text_settings(folder, tokenizer);
  settings.types = false;
  std::vector<float> weights = weights_in(folder, tokenizer);
  for (size_t i = 0; i < weights.size(); ++i)
    if (!std::isfinite(weights[i]))
      fail(ErrorKind::BadFile, "{}: the weight of token {} is not finite; expected a number",
           folder, i);
  TextFormat format(std::move(tokenizer), kUnlimited, settings);
  return {std::move(weights), std::move(format), hash_of({&module, 1})};
}

LogitEncoder open_encoder(SparseModel& model, const std::string& folder, SpladePooling pooling,
                          model::Weights weights, const model::Packing& packing,
                          const std::vector<model::AdapterUse>& adapters) {
  model::ModelFiles files = model::open_model_files(folder, weights, packing, adapters);
  const model::Spec& spec = files.model.spec;
  const bool both = spec.encoder && spec.decoder;
  if (spec.input.kind != model::InputKind::tokens ||
      spec.head.kind != model::HeadKind::language_model || both)
    fail(ErrorKind::Unsupported,
         "{}: the model has no language-model head over its tokens; expected a masked language "
         "model",
         folder);
  model.transformer_folder = folder;
  model.warnings = std::move(files.warnings);
  TextFormat format = TextFormat::open(folder, spec);
  move_to(default_device(), files.model);
  return {std::move(files.model), std::move(format), pooling, std::move(files.origin)};
}

// Opens the Transformer of dense vectors with the layer for the weights of tokens beside it.
LogitEncoder open_scores(SparseModel& model, const std::string& folder, model::Weights weights,
                         const model::Packing& packing,
                         const std::vector<model::AdapterUse>& adapters) {
  const std::string inner = model::transformer_folder(folder);
  model::ModelFiles files = model::open_model_files(inner, weights, packing, adapters);
  const model::Spec& spec = files.model.spec;
  if (spec.input.kind != model::InputKind::tokens || (spec.encoder && spec.decoder))
    fail(ErrorKind::Unsupported,
         "{}: the model is not one encoder or decoder of text; expected one", folder);
  const model::TokenHead head = model::read_token_head(folder, model::kSparseHead, spec.width, 1);
  TokenScores scores;
  scores.linear = model::Linear(spec.width, 1, true);
  scores.linear.weight.value = head.weight.to(default_device());
  scores.linear.bias.value = head.bias.to(default_device());
  TextFormat format = TextFormat::open(inner, spec);
  const std::pair<const char*, std::initializer_list<const char*>> special[] = {
      {"cls_token", {"<s>", "[CLS]"}},
      {"eos_token", {"</s>", "[SEP]"}},
      {"pad_token", {"<pad>", "[PAD]"}},
      {"unk_token", {"<unk>", "[UNK]"}}};
  for (const auto& [key, names] : special)
    if (const auto id = special_token(format.tokenizer(), key, names)) scores.skipped.insert(*id);
  model.transformer_folder = inner;
  model.hash = head.hash;
  model.warnings = std::move(files.warnings);
  move_to(default_device(), files.model);
  return {
      std::move(files.model), std::move(format), {}, std::move(files.origin), std::move(scores)};
}

[[noreturn]] void refuse_modules(const std::string& folder, const std::string& kind) {
  fail(ErrorKind::Unsupported,
       "{}/modules.json: module {} is not supported for sparse vectors; expected a Transformer and "
       "SpladePooling, SparseStaticEmbedding, or a Router to these",
       folder, excerpt(kind, 40));
}

// Reads a chain of modules: a Transformer and its pooling, or a table.
void read_chain(SparseModel& model, const std::string& folder,
                const std::vector<model::ListedModule>& chain, model::Weights weights,
                const model::Packing& packing, const std::vector<model::AdapterUse>& adapters) {
  if (chain.size() == 1 && chain[0].kind == "SparseStaticEmbedding") {
    model.table = read_token_weights(chain[0]);
  } else if (chain.size() == 2 && model::is_transformer(chain[0]) &&
             chain[1].kind == "SpladePooling") {
    model.hash = hash_of(std::span(chain).subspan(1));
    model.encoder = open_encoder(model, chain[0].folder, read_splade_pooling(chain[1].folder),
                                 weights, packing, adapters);
  } else {
    refuse_modules(folder, chain.empty()                     ? "list is empty"
                           : model::is_transformer(chain[0]) ? chain.back().kind
                                                             : chain[0].kind);
  }
}

void read_sparse_settings(SparseModel& model, const std::string& folder) {
  static_cast<NamedPrompts&>(model) = read_prompts(folder);
  const std::string file = folder + "/config_sentence_transformers.json";
  if (!is_file(file)) return;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  model.most_active = find_int(read_json(file), "max_active_dims", file, 1, kMost).value_or(0);
  const auto name = find_setting(folder, "similarity_fn_name");
  const auto similarity = similarity_named(name.value_or("dot"));
  if (!similarity)
    fail(ErrorKind::BadFile, "{}: similarity_fn_name is {}; expected dot, cosine, ...", file,
         excerpt(*name, 40));
  model.similarity = *similarity;
}

// Adds a token's logits to the pooled values of its text, from which weights are computed later:
// the maximum of the logits, or the sum of the weights. Returns whether all logits are finite.
bool add_token(const float* logits, int64_t begin, int64_t end, const SpladePooling& pooling,
               float* pooled) {
  bool finite = true;
  if (pooling.sum) {
    for (int64_t v = begin; v < end; ++v) {
      finite = finite && std::isfinite(logits[v]);
      pooled[v] += weight_of(logits[v], pooling);
    }
    return finite;
  }
  for (int64_t v = begin; v < end; ++v) {
    finite &= logits[v] - logits[v] == 0;
    pooled[v] = logits[v] > pooled[v] ? logits[v] : pooled[v];
  }
  return finite;
}

SparseRow row_of(const std::vector<float>& pooled, const SpladePooling& pooling) {
  SparseRow row;
  for (size_t v = 0; v < pooled.size(); ++v) {
    const float weight = pooling.sum ? pooled[v] : weight_of(pooled[v], pooling);
    if (weight == 0) continue;
    row.indices.push_back(static_cast<int32_t>(v));
    row.values.push_back(weight);
  }
  return row;
}

}  // namespace

// The logits of a batch may need hundreds of megabytes, so they are computed in blocks of tokens.
std::vector<SparseRow> LogitEncoder::rows(const TokenBatch& batch,
                                          const std::function<std::string(size_t)>& name) const {
  const Tensor states = head_states(transformer, batch, std::nullopt, DType::f32);  // [B, T, C]
  if (scores) return rows_of_scores(batch, states, name);
  const int64_t T = states.dim(1), C = states.dim(2), V = transformer.spec.vocabulary;
  std::vector<std::pair<size_t, int64_t>> tokens;  // text and position of each token
  for (size_t b = 0; b < batch.valid.size(); ++b)
    for (int64_t t = batch.valid[b].begin; t < batch.valid[b].end; ++t) tokens.emplace_back(b, t);
  std::vector<SparseRow> rows(batch.valid.size());
  std::vector<float> pooled(static_cast<size_t>(V));
  const auto count = std::ssize(tokens), most = std::max<int64_t>(1, kLogitsOfBlock / V);
  for (int64_t first = 0; first < count; first += most) {
    const int64_t R = std::min(most, count - first);
    const auto token = [&](int64_t i) { return tokens[static_cast<size_t>(first + i)]; };
    const Tensor indices = tensor_from<int32_t>(
        {R}, [&](int64_t i) { return static_cast<int64_t>(token(i).first) * T + token(i).second; });
    const Tensor x = gather(indices, states.view({states.dim(0) * T, C}));  // [R, C]
    const HostValues<float> logits(transformer.logits(x));                  // [R, V]
    for (int64_t i = 0, end = 0; i < R; i = end) {
      const size_t b = token(i).first;
      while (end < R && token(end).first == b) ++end;
      std::atomic<bool> finite = true;
      constexpr int64_t kGrain = 4096;
      parallel_for(V, kGrain, [&](int64_t from, int64_t to) {
        for (int64_t r = i; r < end; ++r)
          if (!add_token(logits.row(r).data(), from, to, pooling, pooled.data())) finite = false;
      });
      if (!finite)
        fail(ErrorKind::Failed,
             "{}: its vector is not finite; expected a model with finite weights", name(b));
      if (first + end < count && tokens[static_cast<size_t>(first + end)].first == b) continue;
      rows[b] = row_of(pooled, pooling);
      std::fill(pooled.begin(), pooled.end(), 0.0f);
    }
  }
  return rows;
}

std::vector<SparseRow> LogitEncoder::rows_of_scores(
    const TokenBatch& batch, const Tensor& states,
    const std::function<std::string(size_t)>& name) const {
  const int64_t T = states.dim(1), C = states.dim(2);
  const HostValues<float> found(scores->linear(states.view({states.dim(0) * T, C})));
  const HostValues<int32_t> ids(batch.sequence.ids);
  std::vector<SparseRow> rows;
  for (size_t b = 0; b < batch.valid.size(); ++b) {
    std::map<int32_t, float> weights;
    for (int64_t t = batch.valid[b].begin; t < batch.valid[b].end; ++t) {
      const int64_t at = static_cast<int64_t>(b) * T + t;
      if (!std::isfinite(found[at]))
        fail(ErrorKind::Failed,
             "{}: its vector is not finite; expected a model with finite weights", name(b));
      if (found[at] <= 0 || scores->skipped.contains(ids[at])) continue;
      float& weight = weights[ids[at]];
      weight = std::max(weight, found[at]);
    }
    SparseRow& row = rows.emplace_back();
    for (const auto& [id, weight] : weights) {
      row.indices.push_back(id);
      row.values.push_back(weight);
    }
  }
  return rows;
}

SparseRow TokenWeights::row(const TokenizedText& text) const {
  std::vector<int32_t> ids = text.ids;
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  SparseRow row;
  for (const int32_t id : ids) {
    const float weight = weights[static_cast<size_t>(id)];
    if (weight == 0) continue;
    row.indices.push_back(id);
    row.values.push_back(weight);
  }
  return row;
}

SparseModel SparseModel::open(const std::string& folder, model::Weights weights,
                              const model::Packing& packing,
                              const std::vector<model::AdapterUse>& adapters) {
  SparseModel model;
  if (model::has_token_head(folder, model::kSparseHead)) {
    static_cast<NamedPrompts&>(model) = read_prompts(folder);
    model.encoder = open_scores(model, folder, weights, packing, adapters);
  } else if (!model::has_modules(folder)) {
    model.encoder = open_encoder(model, folder, {}, weights, packing, adapters);
  } else {
    read_sparse_settings(model, folder);
    std::vector<model::ListedModule> listed = model::list_modules(folder);
    std::erase_if(listed, [](const model::ListedModule& m) { return m.kind == "Dropout"; });
    if (listed.size() == 1 && listed[0].kind == "Router") {
      for (const auto& [route, chain] : model::read_router(listed[0].folder)) {
        if (route != "query" && route != "document")
          fail(ErrorKind::Unsupported, "{}: route {}; expected query and document",
               listed[0].folder, excerpt(route, 40));
        read_chain(model, folder, chain, weights, packing, adapters);
      }
    } else {
      read_chain(model, folder, listed, weights, packing, adapters);
    }
  }
  if (!model.encoder && !model.table) refuse_modules(folder, "Router without routes");
  model.width =
      model.encoder ? model.encoder->transformer.spec.vocabulary : std::ssize(model.table->weights);
  if (model.table && std::ssize(model.table->weights) > model.width)
    fail(ErrorKind::BadFile, "{}: {} weights of tokens; expected at most {}, the vocabulary",
         folder, model.table->weights.size(), model.width);
  return model;
}

void keep_largest(SparseRow& row, int64_t most) {
  if (most <= 0 || std::ssize(row.indices) <= most) return;
  std::vector<size_t> order(row.indices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto last = order.begin() + most;
  std::nth_element(order.begin(), last, order.end(), [&](size_t a, size_t b) {
    return row.values[a] != row.values[b] ? row.values[a] > row.values[b] : a < b;
  });
  order.erase(last, order.end());
  std::sort(order.begin(), order.end());
  SparseRow kept;
  for (const size_t i : order) {
    kept.indices.push_back(row.indices[i]);
    kept.values.push_back(row.values[i]);
  }
  row = std::move(kept);
}

}  // namespace fovea::infer
