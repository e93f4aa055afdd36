#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/hash.h"
#include "base/threads.h"
#include "embed/batching.h"
#include "embed/embedder_parts.h"
#include "embed/retrieval_parts.h"
#include "fovea/model/model_path.h"
#include "open/model_parts.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

void check_finite_rows(const Tensor& rows, const std::string& name) {
  for (const float value : HostValues<float>(rows))
    if (!std::isfinite(value))
      fail(ErrorKind::Failed,
           "{}: one of its vectors is not finite; expected a model with finite weights", name);
}

Tensor rows_tensor(const ArrayView& rows) {
  check(rows.shape.size() == 2, "vectors: {} axes; expected 2", rows.shape.size());
  return tensor_of(rows.elements<float>(), {rows.shape[0], rows.shape[1]});
}

}  // namespace

MultiVectorEmbedder MultiVectorEmbedder::open(const std::string& folder,
                                              model::WeightPrecision precision,
                                              const std::vector<model::AdapterUse>& adapters) {
  const FloatMode mode;
  return MultiVectorEmbedder(std::make_shared<Parts>(Parts{MultiVectorModel::open(
      folder, model::weights_of(precision), model::packing_by_output(precision), adapters)}));
}

std::vector<RoleTokens> read_texts(const MultiVectorModel& model,
                                   const std::vector<std::string>& texts, TextRole role,
                                   const EmbedOptions& options) {
  check_retrieval_options(options);
  const std::string prompt = prompt_for(model, role, options);
  std::vector<int64_t> added(texts.size());
  std::vector<TokenizedText> tokens = tokenize_all(texts.size(), [&](size_t i) {
    check_wanted(options.stop);
    RoleTokens read = model.tokens(prompt, texts[i], role);
    added[i] = read.added;
    return std::move(read.text);
  });
  if (!options.truncate) check_whole(tokens, model.most_tokens(role), options);
  std::vector<RoleTokens> all;
  for (size_t i = 0; i < texts.size(); ++i) all.push_back({std::move(tokens[i]), added[i]});
  return all;
}

std::vector<Tensor> finite_rows(const MultiVectorModel& model, const TokenBatch& batch,
                                const std::vector<int64_t>& added, TextRole role,
                                const std::function<std::string(size_t)>& name) {
  std::vector<Tensor> rows = model.rows(batch, added, role);
  for (size_t b = 0; b < rows.size(); ++b) check_finite_rows(rows[b], name(b));
  return rows;
}

MultiVectors vectors_of(const MultiVectorModel& model, const std::vector<Tensor>& rows,
                        const std::vector<TextLength>& lengths) {
  MultiVectors vectors;
  vectors.count = std::ssize(rows);
  vectors.width = model.width;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t count = rows[i] ? rows[i].dim(0) : 0;
    if (count > 0)
      std::ranges::copy(HostValues<float>(rows[i]), std::back_inserter(vectors.values));
    vectors.starts.push_back(vectors.starts.back() + count);
    vectors.tokens.push_back(lengths[i].tokens);
    vectors.cut.push_back(lengths[i].cut);
  }
  return vectors;
}

MultiVectors MultiVectorEmbedder::embed(const std::vector<std::string>& texts, TextRole role,
                                        const EmbedOptions& options) const {
  const FloatMode mode;
  const MultiVectorModel& model = parts_->model;
  const std::vector<RoleTokens> read = read_texts(model, texts, role, options);
  std::vector<TokenizedText> tokens;
  for (const RoleTokens& text : read) tokens.push_back(text.text);
  std::vector<Tensor> rows(texts.size());
  each_batch(tokens, options.batch_tokens, [&](const TokenBatch& batch, const auto& chosen) {
    std::vector<int64_t> added;
    for (const size_t i : chosen) added.push_back(read[i].added);
    std::vector<Tensor> found = finite_rows(
        model, batch, added, role, [&](size_t b) { return infer::name_of(options, chosen[b]); });
    for (size_t b = 0; b < chosen.size(); ++b) rows[chosen[b]] = std::move(found[b]);
  });
  return vectors_of(model, rows, lengths_of(tokens));
}

float MultiVectorEmbedder::similarity(const ArrayView& query, const ArrayView& text) const {
  const FloatMode mode;
  const Tensor q = rows_tensor(query), t = rows_tensor(text);
  check(q.dim(1) == t.dim(1), "vectors of {} and {} elements; expected equal numbers", q.dim(1),
        t.dim(1));
  const NoGradient off;
  const float sum = largest_similarity(q, t);
  return parts_->model.mean && q.dim(0) > 0 ? sum / static_cast<float>(q.dim(0)) : sum;
}

std::vector<float> MultiVectorEmbedder::scores(const MultiVectors& query,
                                               const MultiVectors& texts) const {
  std::vector<float> all(static_cast<size_t>(texts.count));
  parallel_tasks(texts.count, [&](int64_t i) {
    all[static_cast<size_t>(i)] = similarity(query.rows(0), texts.rows(i));
  });
  return all;
}

std::vector<float> MultiVectorEmbedder::score(const std::string& query,
                                              const std::vector<std::string>& texts,
                                              const EmbedOptions& options) const {
  EmbedOptions plain = options;
  plain.prompt.reset();
  plain.prompt_name.clear();
  return scores(embed({query}, TextRole::query, plain), embed(texts, TextRole::document, plain));
}

std::vector<EmbeddedToken> MultiVectorEmbedder::embed_tokens(const std::string& text,
                                                             TextRole role) const {
  const FloatMode mode;
  const MultiVectorModel& model = parts_->model;
  const std::string prompt = prompt_for(model, role, {});
  const MultiVectors vectors = embed({text}, role);
  const std::vector<text::Offsets> offsets = model.offsets(prompt, text, role);
  std::vector<EmbeddedToken> tokens;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const float* row = vectors.values.data() + static_cast<int64_t>(i) * vectors.width;
    const double length = std::sqrt(std::inner_product(row, row + vectors.width, row, 0.0));
    std::vector<float> vector(row, row + vectors.width);
    for (float& x : vector) x = length > 0 ? static_cast<float>(x / length) : 0;
    tokens.push_back({offsets[i].begin, offsets[i].end, std::move(vector)});
  }
  return tokens;
}

bool MultiVectorEmbedder::averages() const { return parts_->model.mean; }
int64_t MultiVectorEmbedder::width() const { return parts_->model.width; }
int64_t MultiVectorEmbedder::max_tokens(TextRole role) const {
  return parts_->model.most_tokens(role);
}
const std::map<std::string, std::string>& MultiVectorEmbedder::prompts() const {
  return parts_->model.prompts;
}
const text::Tokenizer& MultiVectorEmbedder::tokenizer() const {
  return parts_->model.format.tokenizer();
}
const std::vector<std::string>& MultiVectorEmbedder::warnings() const {
  return parts_->model.warnings;
}
const model::Spec& MultiVectorEmbedder::spec() const { return parts_->model.transformer.spec; }

uint64_t MultiVectorEmbedder::fingerprint() const {
  Hasher hasher;
  hasher.add(hash_text(model::model_fingerprint(parts_->model.transformer_folder)));
  hasher.add(hash_text(parts_->model.hash));
  return hasher.hash();
}

}  // namespace fovea::infer
