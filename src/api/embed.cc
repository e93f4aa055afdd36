#include "fovea/embed.h"

#include <algorithm>
#include <cmath>

#include "api/parts.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "embed/batching.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

std::string prompt_of(const SentenceModules& modules, const EmbedOptions& options) {
  if (options.prompt) return *options.prompt;
  const std::string& name =
      options.prompt_name.empty() ? modules.default_prompt : options.prompt_name;
  if (name.empty()) return "";
  const auto found = modules.prompts.find(name);
  if (found == modules.prompts.end()) {
    std::vector<std::string> names;
    for (const auto& [known, prompt] : modules.prompts) names.push_back(known);
    fail(ErrorKind::InvalidArgument, "prompt: the model has none named {}; expected {}", name,
         names.empty() ? "no name" : fmt::format("one of {}", fmt::join(names, ", ")));
  }
  return found->second;
}

// Its tokens that stand in front of a text's own: the special ones behind it do not.
int64_t prompt_tokens(const TextFormat& format, const std::string& prompt) {
  if (prompt.empty()) return 0;
  return static_cast<int64_t>(format.text(prompt).ids.size()) - format.trailing();
}

std::string name_of(const EmbedOptions& options, size_t text) {
  return options.name_of_text ? options.name_of_text(text) : fmt::format("text {}", text + 1);
}

void check_whole(const std::vector<TokenizedText>& texts, int64_t most,
                 const EmbedOptions& options) {
  for (size_t i = 0; i < texts.size(); ++i) {
    const TokenizedText& text = texts[i];
    if (text.cut > 0)
      fail(ErrorKind::InvalidArgument, "{}: has {} tokens; expected at most {}",
           name_of(options, i), static_cast<int64_t>(text.ids.size()) + text.cut, most);
  }
}

void check_finite(const Tensor& vectors, const EmbedOptions& options) {
  const int64_t width = vectors.dim(1);
  for (int64_t i = 0; i < vectors.size(); ++i)
    if (!std::isfinite(vectors.data_as<float>()[i]))
      fail(ErrorKind::Failed, "{}: its vector is not finite (element {}); expected a sound model",
           name_of(options, static_cast<size_t>(i / width)), i % width);
}

bool ends_normalised(const SentenceModules& modules) {
  return !modules.after.empty() && std::holds_alternative<NormalizeModule>(modules.after.back());
}

// x [B, C] -> [B, the options' dimensions], of length 1 where they say so.
Tensor finished(const Tensor& x, const SentenceModules& modules, const EmbedOptions& options) {
  const int64_t B = x.dim(0), C = x.dim(1);
  const int64_t D = options.dimensions > 0 ? options.dimensions : C;
  const bool normalised = ends_normalised(modules), wanted = options.normalise.value_or(normalised);
  Tensor y = x;
  if (D < C) {
    y = empty({B, D});
    for (int64_t b = 0; b < B; ++b)
      std::copy_n(x.data_as<float>() + b * C, D, y.data_as<float>() + b * D);
  }
  return wanted && (D < C || !normalised) ? unit_length(y) : y;
}

}  // namespace

struct Embedder::Parts {
  std::string folder;
  SentenceModel model;
};

Embedder Embedder::open(const std::string& folder, std::vector<std::string>* warnings,
                        WeightPrecision precision) {
  auto parts = std::make_shared<Parts>(
      Parts{folder, SentenceModel::open(folder, weights_of(precision), packing_of(precision))});
  if (warnings != nullptr) *warnings = parts->model.warnings;
  return Embedder(std::move(parts));
}

Embeddings Embedder::embed(const std::vector<std::string>& texts,
                           const EmbedOptions& options) const {
  const SentenceModel& model = parts_->model;
  const int64_t width = model.modules.width;
  check(options.dimensions >= 0 && options.dimensions <= width,
        "dimensions: {}; expected 1 to {}, the model's", options.dimensions, width);
  const std::string prompt = prompt_of(model.modules, options);
  const std::vector<TokenizedText> tokenized = tokenize_all(texts.size(), [&](size_t i) {
    return model.format.text(prompt.empty() ? texts[i] : prompt + texts[i]);
  });
  if (!options.truncate) check_whole(tokenized, max_tokens(), options);

  Embeddings result;
  result.count = static_cast<int64_t>(texts.size());
  result.width = options.dimensions > 0 ? options.dimensions : width;
  for (const TokenizedText& text : tokenized) {
    result.tokens.push_back(static_cast<int64_t>(text.ids.size()));
    result.cut.push_back(text.cut);
  }
  if (texts.empty()) return result;
  const int64_t leading = prompt_tokens(model.format, prompt);
  const Tensor vectors =
      in_batches(tokenized, result.width, options.batch_tokens, [&](const TokenBatch& batch) {
        return finished(model.embed(batch, leading, DType::f32), model.modules, options);
      });
  check_finite(vectors, options);
  result.values = to_floats(vectors);
  return result;
}

std::vector<EmbeddedToken> Embedder::embed_tokens(const std::string& text,
                                                  const EmbedOptions& options) const {
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
  std::vector<EmbeddedToken> tokens;
  const std::vector<Offsets> places = model.format.places(whole);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto in_text = [&](uint32_t at) { return at > prompt.size() ? at - prompt.size() : 0; };
    const float* vector = vectors.data_as<float>() + static_cast<int64_t>(i) * width;
    tokens.push_back({in_text(places[i].begin), in_text(places[i].end), {vector, vector + width}});
  }
  return tokens;
}

int64_t Embedder::width() const { return parts_->model.modules.width; }
int64_t Embedder::max_tokens() const { return parts_->model.format.most(); }
const std::map<std::string, std::string>& Embedder::prompts() const {
  return parts_->model.modules.prompts;
}

const Tokenizer& Embedder::tokenizer() const { return parts_->model.format.tokenizer(); }
const std::string& Embedder::similarity_name() const {
  return name_of(parts_->model.modules.similarity);
}

uint64_t Embedder::fingerprint() const {
  const std::string folder = transformer_folder(parts_->folder);
  Hasher hasher;
  for (const std::string& name : list_files(folder))
    if (name.ends_with(".json") || name.ends_with(".txt") || name.ends_with(".safetensors"))
      hasher.add(MappedFile(folder + "/" + name).bytes());
  hasher.add(hash_text(parts_->model.modules.hash));
  return hasher.hash();
}

float Embedder::similarity(const float* a, const float* b, int64_t width) const {
  double dot = 0, squares_a = 0, squares_b = 0, square_distance = 0, distance = 0;
  for (int64_t i = 0; i < width; ++i) {
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

}  // namespace fovea
