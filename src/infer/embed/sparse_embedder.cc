#include <algorithm>

#include "base/error.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "base/hash.h"
#include "embed/batching.h"
#include "embed/embedder_parts.h"
#include "embed/retrieval_parts.h"
#include "fovea/model/model_path.h"
#include "open/model_parts.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

// Returns the tokens that a table looks up: those of the text alone.
TokenizedText own_tokens(const TextFormat& format, const std::string& text) {
  std::vector<int32_t> ids = format.own_ids(text);
  const int64_t whole = std::ssize(ids), kept = std::min(whole, format.most());
  ids.resize(static_cast<size_t>(kept));
  return {std::move(ids), {}, whole - kept};
}

}  // namespace

SparseEmbedder SparseEmbedder::open(const std::string& folder, model::WeightPrecision precision,
                                    const std::vector<model::AdapterUse>& adapters) {
  const FloatMode mode;
  return SparseEmbedder(std::make_shared<Parts>(Parts{SparseModel::open(
      folder, model::weights_of(precision), model::packing_by_output(precision), adapters)}));
}

std::vector<TokenizedText> read_texts(const SparseModel& model,
                                      const std::vector<std::string>& texts, TextRole role,
                                      const EmbedOptions& options) {
  check_retrieval_options(options);
  const std::string prompt = prompt_for(model, role, options);
  const TextFormat& format = model.format(role);
  const bool looked_up = model.uses_table(role);
  std::vector<TokenizedText> tokens = tokenize_all(texts.size(), [&](size_t i) {
    check_wanted(options.stop);
    return looked_up ? own_tokens(format, prompt + texts[i]) : format.text(prompt, texts[i]);
  });
  if (!options.truncate) check_whole(tokens, format.most(), options);
  return tokens;
}

SparseVectors vectors_of(const SparseModel& model, std::vector<SparseRow> rows,
                         const std::vector<TextLength>& lengths, int64_t most) {
  SparseVectors vectors;
  vectors.count = std::ssize(rows);
  vectors.width = model.width;
  for (size_t i = 0; i < rows.size(); ++i) {
    keep_largest(rows[i], most > 0 ? most : model.most_active);
    std::ranges::copy(rows[i].indices, std::back_inserter(vectors.indices));
    std::ranges::copy(rows[i].values, std::back_inserter(vectors.values));
    vectors.starts.push_back(std::ssize(vectors.indices));
    vectors.tokens.push_back(lengths[i].tokens);
    vectors.cut.push_back(lengths[i].cut);
  }
  return vectors;
}

SparseVectors SparseEmbedder::embed(const std::vector<std::string>& texts, TextRole role,
                                    const EmbedOptions& options, int64_t most) const {
  const FloatMode mode;
  const SparseModel& model = parts_->model;
  check(most >= 0, "most: {}; expected at least 0", most);
  const std::vector<TokenizedText> tokens = read_texts(model, texts, role, options);
  std::vector<SparseRow> rows(texts.size());
  if (model.uses_table(role)) {
    for (size_t i = 0; i < texts.size(); ++i) rows[i] = model.table->row(tokens[i]);
  } else {
    each_batch(tokens, options.batch_tokens, [&](const TokenBatch& batch, const auto& chosen) {
      auto found =
          model.encoder->rows(batch, [&](size_t b) { return infer::name_of(options, chosen[b]); });
      for (size_t b = 0; b < chosen.size(); ++b) rows[chosen[b]] = std::move(found[b]);
    });
  }
  return vectors_of(model, std::move(rows), lengths_of(tokens), most);
}

int64_t SparseEmbedder::width() const { return parts_->model.width; }
int64_t SparseEmbedder::max_tokens() const {
  return parts_->model.format(TextRole::document).most();
}
const std::string& SparseEmbedder::similarity_name() const {
  return name_of(parts_->model.similarity);
}
const std::map<std::string, std::string>& SparseEmbedder::prompts() const {
  return parts_->model.prompts;
}
const text::Tokenizer& SparseEmbedder::tokenizer() const {
  return parts_->model.format(TextRole::document).tokenizer();
}
const std::vector<std::string>& SparseEmbedder::warnings() const { return parts_->model.warnings; }
const model::Spec* SparseEmbedder::spec() const {
  const auto& encoder = parts_->model.encoder;
  return encoder ? &encoder->transformer.spec : nullptr;
}

uint64_t SparseEmbedder::fingerprint() const {
  const SparseModel& model = parts_->model;
  Hasher hasher;
  hasher.add(hash_text(model.hash));
  if (model.encoder) hasher.add(hash_text(model::model_fingerprint(model.transformer_folder)));
  if (model.table) hasher.add(hash_text(model.table->hash));
  return hasher.hash();
}

}  // namespace fovea::infer
