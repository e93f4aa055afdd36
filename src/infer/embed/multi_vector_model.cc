#include "embed/multi_vector_model.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "checkpoint/module_files.h"
#include "embed/head_states.h"
#include "embed/multi_vector_settings.h"
#include "fovea/core/excerpt.h"
#include "open/directory.h"
#include "safetensors/safetensors.h"
#include "tensor/host_values.h"

namespace fovea::infer {
namespace {

// Reads the modules after the Transformer, which all apply to the vectors of tokens.
void read_token_modules(MultiVectorModel& model, const std::vector<model::ListedModule>& listed,
                        MultiVectorSettings& settings) {
  for (const model::ListedModule& module : std::span(listed).subspan(1)) {
    if (module.kind == "Dense") {
      model.after.emplace_back(read_dense(module.folder, "token_embeddings", model.width));
    } else if (module.kind == "Normalize") {
      model.after.emplace_back(NormalizeModule{});
    } else if (module.kind == "MultiVectorMask") {
      read_mask(module.folder, settings);
    } else if (module.kind != "Dropout") {
      fail(ErrorKind::Unsupported,
           "{}: module {} is not supported for vectors of tokens; expected Dense, Normalize, "
           "MultiVectorMask or Dropout",
           module.folder, excerpt(module.kind, 40));
    }
  }
}

// The original ColBERT has a projection without bias, and normalises the vectors.
void read_projection(MultiVectorModel& model, const std::string& folder) {
  const auto file = SafeTensors::open_model(folder);
  const StoredTensor* stored = file.find("linear.weight");
  if (stored == nullptr || stored->shape.size() != 2 || stored->shape[1] != model.width)
    fail(ErrorKind::BadFile, "{}/model.safetensors: linear.weight is {}; expected [D, {}]", folder,
         stored == nullptr ? "missing" : describe(stored->shape), model.width);
  DenseModule dense;
  const Tensor weight = file.tensor("linear.weight");
  const Tensor value =
      weight.dtype() == DType::f16 ? widen_halves(weight) : convert(weight, DType::f32);
  dense.linear.weight = {value.shape(), model::Role::matrix, value};
  model.width = value.dim(0);
  model.after.emplace_back(std::move(dense));
  model.after.emplace_back(NormalizeModule{});
  const std::string settings = folder + "/artifact.metadata";
  if (is_file(settings)) model.hash = hash_bytes(MappedFile(settings).bytes());
}

int32_t expansion_token(const text::Tokenizer& tokenizer, const MultiVectorSettings& settings,
                        const std::string& folder) {
  std::optional<int32_t> id;
  if (settings.expansion_token) {
    id = tokenizer.id_of(*settings.expansion_token);
  } else {
    id = special_token(tokenizer, "mask_token", {"[MASK]", "<mask>"});
    if (!id) id = tokenizer.eos_id();
  }
  if (!id)
    fail(ErrorKind::BadFile,
         "{}: the tokenizer has no token for the expansion of queries; expected a mask token",
         folder);
  return *id;
}

// Returns the length of the token at the beginning of a prompt that is inserted as one token: the
// whole prompt or its first word.
size_t marker_length(const text::Tokenizer& tokenizer, const std::string& prompt, bool any) {
  for (const size_t end : {prompt.size(), prompt.find(' ')}) {
    if (end == 0 || end == prompt.npos) continue;
    const auto id = tokenizer.id_of(std::string_view(prompt).substr(0, end));
    if (id && (any || tokenizer.is_special(*id))) return end;
  }
  return 0;
}

}  // namespace

namespace {

MultiVectorModel open_transformer(const std::string& inner, const std::string& folder,
                                  model::Weights weights, const model::Packing& packing,
                                  const std::vector<model::AdapterUse>& adapters) {
  model::ModelFiles files = model::open_model_files(inner, weights, packing, adapters);
  const model::Spec& spec = files.model.spec;
  if (spec.input.kind != model::InputKind::tokens || (spec.encoder && spec.decoder))
    fail(ErrorKind::Unsupported,
         "{}: the model is not one encoder or decoder of text; expected one", folder);
  TextFormat format = TextFormat::open(inner, spec);
  MultiVectorModel model{
      {}, std::move(files.model), std::move(format), inner, std::move(files.origin)};
  model.warnings = std::move(files.warnings);
  model.width = model.transformer.spec.width;
  return model;
}

// Moves the weights to the default device, and sets how texts become vectors.
void apply_settings(MultiVectorModel& model, MultiVectorSettings settings,
                    const std::string& folder) {
  move_to(default_device(), model.transformer);
  move_modules(default_device(), model.after);
  static_cast<NamedPrompts&>(model) = std::move(settings.prompts);
  model.inserts = settings.inserts;
  model.mean = settings.mean;
  const text::Tokenizer& tokenizer = model.format.tokenizer();
  for (const std::string& word : settings.skipped_words)
    if (const auto id = tokenizer.id_of(word)) model.skipped.insert(*id);
  model.skip_in_queries = settings.skip_in_queries;
  model.skip_in_documents = settings.skip_in_documents;
  const int64_t most = model.format.most();
  model.document_length = std::min(settings.document_length.value_or(most), most);
  model.query_length = std::min(settings.query_length.value_or(most), most);
  if (!settings.expansion) return;
  model.expansion = settings.expansion;
  QueryExpansion& expansion = *model.expansion;
  expansion.token = expansion_token(tokenizer, settings, folder);
  if (expansion.length > most)
    fail(ErrorKind::BadFile, "{}: queries are extended to {} tokens; expected at most {}", folder,
         expansion.length, most);
  model.query_length =
      expansion.fixed ? expansion.length : std::max(model.query_length, expansion.length);
}

}  // namespace

namespace {

// BGE-M3 has a projection with a bias and vectors of unit length, for all tokens but the first; the
// similarity is the mean over those of the query (Chen et al. 2024, arXiv:2402.03216, 3.2).
MultiVectorModel open_projection(const std::string& inner, const std::string& folder,
                                 model::Weights weights, const model::Packing& packing,
                                 const std::vector<model::AdapterUse>& adapters) {
  MultiVectorModel model = open_transformer(inner, folder, weights, packing, adapters);
  const model::TokenHead head = model::read_token_head(folder, model::kTokensHead, model.width);
  DenseModule dense;
  dense.linear.weight = {head.weight.shape(), model::Role::matrix, head.weight};
  dense.linear.bias = {head.bias.shape(), model::Role::bias, head.bias};
  model.after = {std::move(dense), NormalizeModule{}};
  model.width = head.weight.dim(0);
  model.hash = head.hash;
  MultiVectorSettings settings;
  settings.prompts = read_prompts(folder);
  settings.mean = settings.skip_in_queries = true;
  apply_settings(model, std::move(settings), folder);
  if (model.format.leading() > 0) model.skipped.insert(model.format.framed({}).ids.front());
  return model;
}

}  // namespace

MultiVectorModel MultiVectorModel::open(const std::string& folder, model::Weights weights,
                                        const model::Packing& packing,
                                        const std::vector<model::AdapterUse>& adapters) {
  const std::string inner = fovea::model::transformer_folder(folder);
  if (model::has_token_head(folder, model::kTokensHead))
    return open_projection(inner, folder, weights, packing, adapters);
  MultiVectorSettings settings = read_multi_vector_settings(folder, inner);
  MultiVectorModel model = open_transformer(inner, folder, weights, packing, adapters);
  if (model::has_modules(folder)) {
    const std::vector<model::ListedModule> listed = model::list_modules(folder);
    read_token_modules(model, listed, settings);
    if (settings.from_pylate) model.after.emplace_back(NormalizeModule{});
    model.hash = hash_of(std::span(listed).subspan(1));
  } else {
    read_projection(model, folder);
  }
  apply_settings(model, std::move(settings), folder);
  return model;
}

MultiVectorModel MultiVectorModel::create(const std::string& folder, int64_t width, uint64_t seed,
                                          model::Weights weights, const model::Packing& packing) {
  const std::string inner = fovea::model::transformer_folder(folder);
  MultiVectorModel model = open_transformer(inner, folder, weights, packing, {});
  DenseModule dense;
  const Shape shape = {width, model.width};
  const float deviation = 1 / std::sqrt(3 * static_cast<float>(model.width));  // of torch.nn.Linear
  dense.linear.weight = {shape, model::Role::matrix, normal(shape, deviation, seed)};
  model.after.emplace_back(std::move(dense));
  model.after.emplace_back(NormalizeModule{});
  model.width = width;
  apply_settings(model, new_multi_vector_settings(model.format), folder);
  return model;
}

RoleTokens MultiVectorModel::tokens(const std::string& prompt, const std::string& text,
                                    TextRole role) const {
  const bool query = role == TextRole::query;
  const text::Tokenizer& tokenizer = format.tokenizer();
  format.refuse_messages("vectors of their tokens");
  const size_t marker = marker_length(tokenizer, prompt, inserts);
  std::vector<int32_t> ids = format.own_ids(prompt.substr(marker) + text);
  if (marker > 0)
    ids.insert(ids.begin(), *tokenizer.id_of(std::string_view(prompt).substr(0, marker)));
  const int64_t added = format.leading() + format.trailing(), whole = std::ssize(ids);
  const int64_t room = std::max<int64_t>(0, (query ? query_length : document_length) - added);
  ids.resize(static_cast<size_t>(std::min(whole, room)));
  RoleTokens result{format.framed(ids), 0};
  result.text.cut = whole - std::ssize(ids);
  if (!query || !expansion) return result;
  result.added = std::max<int64_t>(0, expansion->length - std::ssize(result.text.ids));
  const size_t length = result.text.ids.size() + static_cast<size_t>(result.added);
  result.text.ids.resize(length, expansion->token);
  if (!result.text.types.empty()) result.text.types.resize(length, 0);
  return result;
}

std::vector<text::Offsets> MultiVectorModel::offsets(const std::string& prompt,
                                                     const std::string& text, TextRole role) const {
  const RoleTokens read = tokens(prompt, text, role);
  const std::vector<int32_t>& ids = read.text.ids;
  const size_t marker = marker_length(format.tokenizer(), prompt, inserts);
  const size_t before = prompt.size() - marker;  // bytes of the prompt among the text's own tokens
  std::vector<text::Offsets> all = format.offsets(prompt.substr(marker) + text);
  if (marker > 0) all.insert(all.begin() + format.leading(), text::Offsets{});
  all.resize(ids.size());  // shorter if documents are truncated, longer if a query is extended
  const auto end = all.end() - read.added;
  std::fill(end - format.trailing(), end, text::Offsets{});
  std::vector<text::Offsets> kept;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!scored(ids[i], role)) continue;
    const auto in_text = [&](uint32_t at) {
      return at > before ? static_cast<uint32_t>(at - before) : 0;
    };
    kept.push_back({in_text(all[i].begin), in_text(all[i].end)});
  }
  return kept;
}

int64_t MultiVectorModel::vectors_of(const TokenizedText& text, TextRole role) const {
  return std::ranges::count_if(text.ids, [&](int32_t id) { return scored(id, role); });
}

Tensor MultiVectorModel::all_rows(const model::Transformer& by, const TokenBatch& batch,
                                  const std::vector<int64_t>& added, TextRole role,
                                  int64_t recompute) const {
  TokenBatch seen = batch;  // `valid`: the tokens to which all tokens attend
  for (size_t b = 0; b < added.size(); ++b)
    if (expansion && !expansion->attended) seen.valid[b].end -= added[b];
  const Tensor states =
      head_states(by, seen, std::nullopt, DType::f32, nullptr, recompute);  // [B, T, C]
  const int64_t T = states.dim(1), C = states.dim(2);
  const HostValues<int32_t> ids(batch.sequence.ids);
  std::vector<int32_t> kept;  // rows of `states`
  for (size_t b = 0; b < batch.valid.size(); ++b)
    for (int64_t t = batch.valid[b].begin; t < batch.valid[b].end; ++t) {
      const int64_t row = static_cast<int64_t>(b) * T + t;
      if (scored(ids[row], role)) kept.push_back(static_cast<int32_t>(row));
    }
  if (kept.empty()) return zeros({0, width});
  Tensor x = gather(vector_tensor(kept), states.view({states.dim(0) * T, C}));
  for (const VectorModule& module : after) x = apply_module(module, x);
  return x;
}

std::vector<Tensor> MultiVectorModel::rows(const TokenBatch& batch,
                                           const std::vector<int64_t>& added, TextRole role) const {
  const Tensor all = all_rows(transformer, batch, added, role).to(cpu_device());
  const HostValues<int32_t> ids(batch.sequence.ids);
  std::vector<Tensor> rows;
  int64_t first = 0;
  for (size_t b = 0; b < batch.valid.size(); ++b) {
    const Interval valid = batch.valid[b];
    const auto text = ids.row(static_cast<int64_t>(b))
                          .subspan(static_cast<size_t>(valid.begin),
                                   static_cast<size_t>(valid.end - valid.begin));
    const int64_t count = std::ranges::count_if(text, [&](int32_t id) { return scored(id, role); });
    rows.push_back(all.rows(first, first + count));
    first += count;
  }
  return rows;
}

float largest_similarity(const Tensor& query, const Tensor& text) {
  if (query.dim(0) == 0 || text.dim(0) == 0) return 0;
  model::Linear products;
  products.weight = {text.shape(), model::Role::matrix, text};
  const HostValues<float> dots(products(query));  // [Q, D]
  double sum = 0;
  for (int64_t q = 0; q < query.dim(0); ++q) sum += std::ranges::max(dots.row(q));
  return static_cast<float>(sum);
}

}  // namespace fovea::infer
