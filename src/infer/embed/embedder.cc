#include "fovea/infer/embed.h"

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "base/hash.h"
#include "checkpoint/module_files.h"
#include "embed/batching.h"
#include "embed/embedder_parts.h"
#include "fovea/model/model_path.h"
#include "open/model_parts.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::infer {

Embedder Embedder::open(const std::string& folder, model::WeightPrecision precision,
                        const std::vector<model::AdapterUse>& adapters) {
  const FloatMode mode;
  SentenceModel model = SentenceModel::open(folder, model::weights_of(precision),
                                            model::packing_by_output(precision), adapters);
  model.move_to(default_device());
  return Embedder(std::make_shared<Parts>(Parts{folder, std::move(model)}));
}

const std::vector<std::string>& Embedder::warnings() const { return parts_->model.warnings; }

Embeddings Embedder::embed(const std::vector<std::string>& texts,
                           const EmbedOptions& options) const {
  const FloatMode mode;
  const SentenceModel& model = parts_->model;
  EmbedInput input = read_texts(model, texts, options);
  if (texts.empty()) return input.result;
  const Tensor vectors = in_batches(
      input.texts, input.result.width, options.batch_tokens, [&](const TokenBatch& batch) {
        return finished(model.embed(batch, input.prompt, DType::f32), model.modules, options);
      });
  check_finite(vectors, options);
  input.result.values = to_floats(vectors);
  return input.result;
}

std::vector<EmbeddedToken> Embedder::embed_tokens(const std::string& text,
                                                  const EmbedOptions& options) const {
  const FloatMode mode;
  const SentenceModel& model = parts_->model;
  const std::string prompt = prompt_of(model.modules, options);
  const std::string whole = prompt + text;
  const std::vector<TokenizedText> tokenized = {model.format.text(whole)};
  if (tokenized[0].ids.empty()) return {};
  const NoGradient no_gradient;
  const Tensor states = model.token_states(token_batch(tokenized, {0}), DType::f32);  // [1, T, C]
  const int64_t width = states.dim(2);
  const Tensor vectors = unit_length(states.view({states.dim(1), width}));
  check_finite(vectors, options);
  const HostValues<float> rows(vectors);
  std::vector<EmbeddedToken> tokens;
  const std::vector<text::Offsets> offsets = model.format.offsets(whole);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const auto in_text = [&](uint32_t at) { return at > prompt.size() ? at - prompt.size() : 0; };
    const std::span<const float> row = rows.row(static_cast<int64_t>(i));
    tokens.push_back(
        {in_text(offsets[i].begin), in_text(offsets[i].end), {row.begin(), row.end()}});
  }
  return tokens;
}

int64_t Embedder::width() const { return parts_->model.modules.width; }
int64_t Embedder::max_tokens() const { return parts_->model.format.most(); }
const std::map<std::string, std::string>& Embedder::prompts() const {
  return parts_->model.modules.prompts;
}

std::string Embedder::pooling() const { return describe_pooling(parts_->model.modules); }
const text::Tokenizer& Embedder::tokenizer() const { return parts_->model.format.tokenizer(); }
const model::Spec& Embedder::spec() const { return parts_->model.transformer.spec; }
const std::string& Embedder::similarity_name() const {
  return name_of(parts_->model.modules.similarity);
}

uint64_t Embedder::fingerprint() const {
  Hasher hasher;
  hasher.add(hash_text(model::model_fingerprint(model::transformer_folder(parts_->folder))));
  hasher.add(hash_text(parts_->model.modules.hash));
  return hasher.hash();
}

float Embedder::similarity(std::span<const float> a, std::span<const float> b) const {
  const FloatMode mode;
  check(a.size() == b.size(), "vectors of {} and {} elements; expected equal numbers", a.size(),
        b.size());
  double dot = 0, squares_a = 0, squares_b = 0, square_distance = 0, distance = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    dot += x * y;
    squares_a += x * x;
    squares_b += y * y;
    square_distance += (x - y) * (x - y);
    distance += std::abs(x - y);
  }
  switch (parts_->model.modules.similarity) {
    case Similarity::dot: return static_cast<float>(dot);
    case Similarity::euclidean: return static_cast<float>(-std::sqrt(square_distance));
    case Similarity::manhattan: return static_cast<float>(-distance);
    case Similarity::cosine: break;
  }
  const double lengths = std::sqrt(squares_a * squares_b);
  return lengths > 0 ? static_cast<float>(dot / lengths) : 0.0f;
}

}  // namespace fovea::infer
